//! A scan is in the table's order only where an operator above needs it.

use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;

use crate::support::{
    create, create_ordered, explain, leaf, manager, partitions, plain, plan, run, shared,
};

/// Creates tables `sorted` and `also_sorted`, which declare the order of `id`, and `unsorted`, which does not.
async fn create_tables(context: &SessionContext, directory: &std::path::Path) {
    let location = directory.join("numbers.parquet");
    for table in ["sorted", "also_sorted"] {
        create_ordered(context, table, "id", &location).await;
    }
    create(context, "unsorted", &location).await;
}

/// The operators for which the scans of a query are in order, with an empty name for each scan in any order. Checks
/// that the rows are those of plain DataFusion.
async fn ordered_for(
    context: &SessionContext,
    reference: &SessionContext,
    sql: &str,
) -> Vec<String> {
    let (mut rows, mut expected) = (run(context, sql).await, run(reference, sql).await);
    if !sql.contains("ORDER BY") || sql.contains("OVER") {
        rows.sort();
        expected.sort();
    }
    assert_eq!(rows, expected, "{sql}");
    let text = explain(context, &format!("EXPLAIN {sql}")).await;
    let scans = text.split("SharedScanExec: ").skip(1);
    scans
        .map(|scan| match scan.split_once("needed_by=") {
            Some((_, rest)) if scan.contains("order=table") => {
                rest.split(',').next().unwrap().to_owned()
            }
            _ => {
                assert!(scan.contains("order=any"), "{text}");
                String::new()
            }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_that_need_an_order_get_it_and_no_others() {
    let data = crate::support::numbers_directory(4600);
    let (context, reference) = (shared(&manager(PolicyKind::Relevance)), plain());
    for context in [&context, &reference] {
        create_tables(context, data.path()).await;
    }
    let any: &[&str] = &[""];
    let sort: &[&str] = &["ORDER BY"];
    let cases: [(&str, &[&str]); 28] = [
        // Nothing needs an order.
        ("SELECT id, text FROM sorted", any),
        ("SELECT sum(id), max(text) FROM sorted", any),
        ("SELECT id % 7, count(*) FROM sorted GROUP BY id % 7", any),
        ("SELECT id, count(*) FROM sorted GROUP BY id", any),
        ("SELECT DISTINCT id FROM sorted", any),
        ("SELECT first_value(id ORDER BY id DESC) FROM sorted", any),
        ("SELECT a.id FROM sorted a JOIN also_sorted b ON a.id = b.id + 1", &["", ""]),
        ("SELECT id FROM sorted UNION ALL SELECT id FROM also_sorted", &["", ""]),
        // A sort needs the order.
        ("SELECT id, text FROM sorted ORDER BY id", sort),
        ("SELECT id + 1, id FROM sorted WHERE id % 7 = 3 ORDER BY id", sort),
        ("SELECT id FROM sorted ORDER BY id LIMIT 10 OFFSET 5", sort),
        ("SELECT max(id) FROM (SELECT id FROM sorted ORDER BY id LIMIT 100)", sort),
        (
            "SELECT id FROM (SELECT id FROM sorted ORDER BY id LIMIT 100) ORDER BY id % 10, id LIMIT 5",
            sort,
        ),
        (
            "SELECT id FROM sorted UNION ALL SELECT id FROM also_sorted ORDER BY id",
            &["ORDER BY"; 2],
        ),
        // A sort needs another order, or is above an operator that loses the order or returns fewer
        // rows.
        ("SELECT id FROM sorted ORDER BY id DESC", any),
        ("SELECT id, text FROM sorted ORDER BY text, id", any),
        ("SELECT id FROM sorted WHERE id % 7 = 3 ORDER BY id LIMIT 10", any),
        ("SELECT id FROM unsorted ORDER BY id", any),
        ("SELECT id FROM sorted UNION ALL SELECT id FROM unsorted ORDER BY id", &["", ""]),
        ("SELECT id, count(*) FROM sorted GROUP BY id ORDER BY id", any),
        // The first groups are known before the rest is read.
        ("SELECT id, count(*) FROM sorted WHERE id % 7 = 3 GROUP BY id ORDER BY id LIMIT 10", sort),
        // Windows and aggregates need the order.
        (
            "SELECT id, sum(id) OVER (ORDER BY id ROWS 1 PRECEDING) FROM sorted",
            &["BoundedWindowAggExec"],
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY text ORDER BY id) FROM sorted",
            &["BoundedWindowAggExec"],
        ),
        ("SELECT id, row_number() OVER (PARTITION BY id % 7 ORDER BY text) FROM sorted", any),
        (
            "SELECT id, sum(id) OVER (PARTITION BY id % 7 ORDER BY id \
             ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM sorted",
            any,
        ),
        ("SELECT array_agg(id ORDER BY id) FROM sorted WHERE id < 100", any),
        (
            "SELECT id / 100, nth_value(id, 2 ORDER BY id DESC) FROM sorted GROUP BY 1 ORDER BY 1 LIMIT 4",
            any,
        ),
        (
            "SELECT id, nth_value(key, 2 ORDER BY id DESC), array_agg(key ORDER BY id DESC) FROM sorted \
             GROUP BY id ORDER BY id LIMIT 4",
            any,
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(ordered_for(&context, &reference, sql).await, expected, "{sql}");
    }
    for context in [&context, &reference] {
        run(context, "SET datafusion.optimizer.prefer_hash_join = false").await;
    }
    for (join, expected) in [
        ("sorted a JOIN also_sorted b ON a.id = b.id", ["SortMergeJoinExec"; 2]),
        ("sorted a LEFT JOIN unsorted b ON a.id = b.id", ["SortMergeJoinExec", ""]),
        ("sorted a JOIN also_sorted b ON a.id = b.id + 1", ["SortMergeJoinExec", ""]),
    ] {
        let sql = format!("SELECT a.id, b.id FROM {join}");
        assert_eq!(ordered_for(&context, &reference, &sql).await, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_says_why_scans_are_in_order_or_not() {
    let data = crate::support::numbers_directory(4600);
    let context = shared(&manager(PolicyKind::Relevance));
    create_tables(&context, data.path()).await;
    let small = explain(&context, "EXPLAIN SELECT id FROM sorted ORDER BY id").await;
    assert!(small.contains("workers=1,"), "{small}");
    run(&context, "SET datafusion.execution.batch_size = 1000").await;
    for (sql, scan) in [
        ("SELECT id FROM sorted ORDER BY id", "order=table, needed_by=ORDER BY, workers=4,"),
        (
            "SELECT id FROM sorted ORDER BY id LIMIT 9",
            "order=table, needed_by=ORDER BY, workers=1,",
        ),
        ("SELECT sum(id) FROM sorted", "order=any (no order needed),"),
        (
            "SELECT id FROM unsorted ORDER BY id",
            "order=any (ORDER BY needs an order and the table has none),",
        ),
        ("SELECT id FROM sorted ORDER BY text", "order=any (ORDER BY needs another order),"),
        (
            "SELECT a.id FROM sorted a, also_sorted b WHERE a.id > b.id ORDER BY a.id LIMIT 1",
            "order=any (the order is lost below ORDER BY),",
        ),
        (
            "SELECT id, count(*) FROM sorted GROUP BY id ORDER BY id",
            "order=any (a sort of fewer rows for ORDER BY costs less),",
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY key ORDER BY text) FROM sorted",
            "order=any (BoundedWindowAggExec needs another order),",
        ),
    ] {
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(text.contains(scan), "{text}");
    }
    let scan = leaf(&plan(&context, "SELECT sum(id) FROM sorted").await);
    assert_eq!(partitions(&scan), 4, "in no order, in parallel");
}
