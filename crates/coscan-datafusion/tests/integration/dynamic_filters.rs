//! Rows that a join would drop are dropped below the aggregations and repartitions of its input.

use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;

use crate::support::{create, explain, manager, plain, run, set_partitions, shared, sorted};

/// Tables with few, many and no rows. In `many`, every 97th key is NULL; each of the thousand others has about a hundred rows.
const TABLES: [(&str, &str); 3] = [
    ("few", "SELECT value * 37 % 1000 AS k, value AS v FROM generate_series(1, 20)"),
    (
        "many",
        "SELECT CASE WHEN value % 97 > 0 THEN value * 7919 % 1000 END AS k, value % 50 AS j, value AS v \
         FROM generate_series(1, 100000)",
    ),
    ("nothing", "SELECT value AS k FROM generate_series(1, 0)"),
];

/// Queries with dynamic filters below an aggregation or a repartition. `true` if the filters drop most rows.
const QUERIES: [(&str, bool); 11] = [
    (
        "SELECT f.v, n, s FROM few f JOIN (SELECT k, count(*) AS n, sum(v) AS s FROM many GROUP BY k) m ON f.k = m.k",
        true,
    ),
    (
        "SELECT f.v, n FROM few f LEFT JOIN (SELECT k, count(v) AS n FROM many WHERE j > 10 GROUP BY k) m ON f.k = m.k",
        true,
    ),
    (
        "SELECT f.v, n FROM few f JOIN (SELECT k, j, count(*) AS n FROM many GROUP BY k, j) m ON f.k = m.k AND f.v = m.j",
        true,
    ),
    (
        "SELECT f.v, n FROM few f JOIN (SELECT -k AS k, count(*) AS n FROM many GROUP BY -k) m ON -f.k = m.k",
        false,
    ),
    ("SELECT k, v FROM few WHERE k IN (SELECT k FROM many GROUP BY k HAVING count(*) > 10)", true),
    ("SELECT k, v FROM few WHERE k NOT IN (SELECT k FROM many GROUP BY k)", false),
    ("SELECT k, v FROM few WHERE k NOT IN (SELECT k FROM many WHERE k < 500 GROUP BY k)", false),
    (
        "SELECT f.v, n FROM (SELECT k, v FROM few UNION ALL SELECT NULL, 0) f \
         JOIN (SELECT k, count(*) AS n FROM many GROUP BY k) m ON f.k IS NOT DISTINCT FROM m.k",
        false,
    ),
    (
        "SELECT m.k, n FROM nothing e JOIN (SELECT k, count(*) AS n FROM many GROUP BY k) m ON e.k = m.k",
        false,
    ),
    ("SELECT k, count(*) FROM many GROUP BY k ORDER BY k LIMIT 5", false),
    ("SELECT k FROM few INTERSECT SELECT k FROM many", false),
];

async fn tables(context: &SessionContext) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    for (name, sql) in TABLES {
        let path = data.path().join(format!("{name}.parquet"));
        let options = "OPTIONS ('max_row_group_size' '10000')";
        run(context, &format!("COPY ({sql}) TO '{}' {options}", path.display())).await;
        create(context, name, &path).await;
    }
    data
}

/// The rows that the first operator of dynamic filters in the plan handed on, and those that it got.
async fn rows_left(context: &SessionContext, sql: &str) -> Option<(f64, f64)> {
    let plan = explain(context, &format!("EXPLAIN ANALYZE {sql}")).await;
    let operator = plan.lines().find(|line| line.contains("DynamicFilterExec"))?;
    let (_, ratio) = operator.split_once("selectivity=")?;
    let (_, ratio) = ratio.split_once('(')?;
    let (left, of) = ratio.split_once(')')?.0.split_once('/')?;
    let number = |text: &str| {
        let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        number.parse::<f64>().unwrap() * if unit == "K" { 1e3 } else { 1.0 }
    };
    Some((number(left), number(of)))
}

#[tokio::test]
async fn rows_are_those_of_plain_datafusion_and_most_are_dropped_early() {
    let context = shared(&manager(PolicyKind::Relevance));
    let reference = plain();
    let _data = tables(&context).await;
    let _data_of_plain = tables(&reference).await;
    for partitions in [1, 4] {
        set_partitions(&context, partitions).await;
        for batch_rows in [100, 8192] {
            run(&context, &format!("SET datafusion.execution.batch_size = {batch_rows}")).await;
            for (sql, drops_most) in QUERIES {
                let expected = sorted(&reference, sql).await;
                assert_eq!(
                    sorted(&context, sql).await,
                    expected,
                    "{partitions} {batch_rows} {sql}"
                );
                if drops_most {
                    let (left, of) = rows_left(&context, sql).await.expect(sql);
                    assert!(left * 2.0 < of, "{left} of {of}: {sql}");
                }
            }
        }
    }
}

#[tokio::test]
async fn they_are_directly_below_aggregations_and_hash_repartitions() {
    let context = shared(&manager(PolicyKind::Relevance));
    let _data = tables(&context).await;
    let plan = async |sql: &str| explain(&context, &format!("EXPLAIN {sql}")).await;
    let above = |text: &str| -> Vec<String> {
        let lines: Vec<_> = text.lines().collect();
        let pairs = lines.windows(2).filter(|pair| pair[1].contains("DynamicFilterExec"));
        pairs.map(|pair| pair[0].to_owned()).collect()
    };
    let (grouped, _) = QUERIES[0];
    let text = plan(grouped).await;
    let operators = above(&text);
    assert!(text.contains("DynamicFilterExec: columns=[k]"), "{text}");
    assert!(operators.iter().all(|line| line.contains("AggregateExec: mode=Partial")), "{text}");
    let joined = "SELECT f.v, m.v FROM few f JOIN many m ON f.k = m.k";
    assert!(above(&plan(joined).await).is_empty(), "directly below the join");
    assert!(above(&plan("SELECT min(v) FROM many WHERE j = 3").await).is_empty(), "no groups");
    for setting in ["", "_rows"] {
        let threshold =
            format!("datafusion.optimizer.hash_join_single_partition_threshold{setting}");
        run(&context, &format!("SET {threshold} = 0")).await;
    }
    let operators = above(&plan(joined).await);
    let is_repartition = |line: &String| line.contains("RepartitionExec: partitioning=Hash");
    assert!(!operators.is_empty() && operators.iter().all(is_repartition), "{operators:?}");
    run(&context, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    let text = plan(&grouped.replace("FROM many", "FROM many WHERE j > 10")).await;
    assert!(text.contains("pushed_filters=") && text.contains("DynamicFilterExec"), "{text}");
}
