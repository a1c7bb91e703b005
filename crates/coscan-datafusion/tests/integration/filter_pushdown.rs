//! Filters on one of several columns of the same name filter that column: in shared tables, and in those that the engine
//! reads itself.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;

use crate::support::{
    create, create_ordered, explain, manager, run, set_partitions, shared, write,
};

/// Tables with columns of the same name.
const TABLES: [(&str, &str); 8] = [
    ("day", "SELECT value AS d, value * 10 AS w FROM generate_series(0, 199)"),
    ("ev", "SELECT value AS d, value AS e FROM generate_series(0, 99)"),
    ("many", "SELECT value % 100 AS d, value AS e FROM generate_series(0, 9999)"),
    ("orders", "SELECT value AS id, 1000 - value AS amount FROM generate_series(1, 900)"),
    (
        "payments",
        "SELECT value AS id, (value * 7) % 900 + 5 AS amount FROM generate_series(1, 300)",
    ),
    ("a", "SELECT 'a1' AS id, 'x1' AS ty"),
    ("b", "SELECT 'x1' AS id"),
    ("t", "SELECT value AS k, value % 7 AS j FROM generate_series(0, 199)"),
];

/// Queries whose filters, given or dynamic, name one of several columns of the same name, with their rows.
const QUERIES: [(&str, &[&str]); 10] = [
    (
        "SELECT sum(y.e), min(y.d), sum(z.w), count(*) FROM day x JOIN ev y ON x.d = y.d AND y.e IS NOT NULL \
         RIGHT JOIN day z ON x.d = z.d WHERE y.d IS NULL",
        &["NULL NULL 149500 100"],
    ),
    // In these, the join swaps its inputs, and a projection above it restores their order.
    (
        "SELECT sum(y.e), min(y.d), sum(z.w), count(*) FROM day x JOIN many y ON x.d = y.d AND y.e IS NOT NULL \
         RIGHT JOIN day z ON x.d = z.d WHERE y.d IS NULL",
        &["NULL NULL 149500 100"],
    ),
    ("SELECT count(*) FROM many x RIGHT JOIN day z ON x.d = z.d WHERE x.d IS NULL", &["100"]),
    (
        "SELECT o.amount, p.amount FROM orders o JOIN payments p ON o.id = p.id JOIN t ON p.id = t.k \
         ORDER BY p.amount LIMIT 2",
        &["871 8", "999 12"],
    ),
    (
        "SELECT s.id, q.aid, q.bid FROM b s JOIN (SELECT a.id AS aid, b.id AS bid FROM a LEFT JOIN b ON a.ty = b.id) q \
         ON s.id = q.bid",
        &["x1 a1 x1"],
    ),
    (
        "SELECT s.id, a.id, b.id FROM b s JOIN (SELECT a.id, b.id FROM a LEFT JOIN b ON a.ty = b.id \
         WHERE a.ty || b.id <> 'x') ON s.id = b.id",
        &["x1 a1 x1"],
    ),
    (
        "SELECT s.id, a.id, b.id, tag FROM a s JOIN (SELECT a.id, b.id, a.ty || '!' AS tag FROM a JOIN b ON a.ty = b.id) \
         ON s.id = a.id",
        &["a1 a1 x1 x1!"],
    ),
    (
        "SELECT s.id, a.id, b.id FROM b s JOIN (SELECT a.id, b.id FROM a LEFT JOIN b ON a.ty = b.id GROUP BY a.id, b.id) \
         ON s.id = b.id",
        &["x1 a1 x1"],
    ),
    // The key of a semi join has another name in the other input, which also has another column of
    // that name.
    (
        "SELECT count(*), min(k) FROM (SELECT k, j FROM t WHERE k > 150) l WHERE EXISTS \
         (SELECT 1 FROM t r WHERE r.j = l.j AND r.k < l.k)",
        &["49 151"],
    ),
    (
        "SELECT count(*) FROM (SELECT d, e FROM ev UNION ALL SELECT w, d FROM day) WHERE d > 1000",
        &["99"],
    ),
];

async fn tables(context: &SessionContext) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    for (name, sql) in TABLES {
        let path = data.path().join(format!("{name}.parquet"));
        let options = "OPTIONS ('max_row_group_size' '20')";
        run(context, &format!("COPY ({sql}) TO '{}' {options}", path.display())).await;
        create(context, name, &path).await;
    }
    data
}

async fn assert_answers(context: &SessionContext, whose: &str) {
    for (sql, expected) in QUERIES {
        assert_eq!(run(context, sql).await, expected, "{whose}: {sql}");
    }
}

#[tokio::test]
async fn filters_on_columns_of_the_same_name_filter_the_right_one() {
    let context = shared(&manager(PolicyKind::Relevance));
    run(&context, "SET datafusion.optimizer.join_reordering = false").await;
    let _data = tables(&context).await;
    assert_answers(&context, "shared tables").await;
    run(&context, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    assert_answers(&context, "shared tables that filter rows").await;
}

#[tokio::test]
async fn so_do_filters_on_tables_that_the_engine_reads_itself() {
    let context = crate::support::plain();
    run(&context, "SET datafusion.optimizer.join_reordering = false").await;
    let _data = tables(&context).await;
    coscan_datafusion::install(&context, &manager(PolicyKind::Relevance)).unwrap();
    run(&context, "SET coscan.sharing = false").await;
    assert_answers(&context, "the engine's tables").await;
    run(&context, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    assert_answers(&context, "the engine's tables that filter rows").await;
}

#[tokio::test]
async fn filters_whose_columns_are_found_are_pushed_down_as_before() {
    let context = shared(&manager(PolicyKind::Relevance));
    let _data = tables(&context).await;
    let sql = "EXPLAIN SELECT o.amount FROM orders o JOIN payments p ON o.id = p.id ORDER BY o.amount LIMIT 1";
    let text = explain(&context, sql).await;
    assert_eq!(text.matches("DynamicFilter").count(), 2, "of the top-k, and of the join:\n{text}");
}

#[tokio::test]
async fn minima_and_maxima_of_expressions_miss_no_rows() {
    let context = shared(&manager(PolicyKind::Relevance));
    let data = tempfile::tempdir().unwrap();
    let keys = || Arc::new((0..2_000).collect::<Int64Array>()) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("k", keys()), ("v", keys())]).unwrap();
    write(&data.path().join("t.parquet"), &batch, 100);
    create(&context, "numbers", data.path()).await;
    for (sql, row, filters) in [
        ("SELECT min(k), max(v + 0) FROM numbers", "0 1999", 0),
        ("SELECT max(-k), min(k) FROM numbers WHERE v > 5", "-6 6", 0),
        // As long as one has seen only NULL, the filter would be that of the other.
        ("SELECT min(k), max(v) FROM numbers WHERE v > 5", "6 1999", 0),
        ("SELECT max(v) FROM numbers WHERE v > 5", "1999", 1),
    ] {
        let plan = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert_eq!(plan.matches("DynamicFilter").count(), filters, "{sql}:\n{plan}");
        assert_eq!(run(&context, sql).await, [row], "{sql}");
    }
}

#[tokio::test]
async fn no_filter_passes_an_operator_with_a_limit() {
    let context = shared(&manager(PolicyKind::Relevance));
    let data = tempfile::tempdir().unwrap();
    let sorted = data.path().join("sorted.parquet");
    let groups = "SELECT value / 100 AS k, value AS v FROM generate_series(0, 99999)";
    let options = "OPTIONS ('max_row_group_size' '10000')";
    run(&context, &format!("COPY ({groups}) TO '{}' {options}", sorted.display())).await;
    create_ordered(&context, "sorted", "k", &sorted).await;
    let few = data.path().join("few.parquet");
    run(&context, &format!("COPY (VALUES (3), (900)) TO '{}'", few.display())).await;
    create(&context, "few", &few).await;
    run(&context, "SET datafusion.optimizer.join_reordering = false").await;
    for partitions in [1, 4] {
        set_partitions(&context, partitions).await;
        for limit in [50, 150] {
            let first = format!(
                "SELECT k, count(*) AS n FROM sorted GROUP BY k HAVING count(*) > 10 ORDER BY k LIMIT {limit}"
            );
            let sql = format!("SELECT f.column1, n FROM few f JOIN ({first}) s ON f.column1 = s.k");
            assert_eq!(run(&context, &sql).await, ["3 100"], "{partitions} {limit}");
        }
    }
}

#[tokio::test]
async fn an_aggregation_that_is_executed_again_forgets_its_bounds() {
    let context = shared(&manager(PolicyKind::Relevance));
    let _data = tables(&context).await;
    let sql = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, \
               (SELECT max(e) AS m FROM many WHERE d > 3) WHERE n < m AND n < 5) SELECT * FROM r";
    assert_eq!(run(&context, sql).await, ["1", "2", "3", "4", "5"]);
}
