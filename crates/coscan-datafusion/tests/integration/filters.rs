//! Cheaper filters give the rows of the engine's, and look like them in EXPLAIN.

use crate::support::{explain, numbers_table, plain, run, set_partitions};
use datafusion::prelude::SessionContext;

const ROWS: i64 = 4_600;

/// The engine and coscan on a table of numbers.
async fn contexts() -> (tempfile::TempDir, [SessionContext; 2]) {
    let (data, _, coscan) = numbers_table(ROWS).await;
    let engine = plain();
    crate::support::create(&engine, "numbers", data.path()).await;
    (data, [engine, coscan])
}

#[tokio::test]
async fn rows_are_those_of_the_engine() {
    let (_data, contexts) = contexts().await;
    let queries = [
        "SELECT id FROM numbers WHERE id % 2 = 0 AND value > 10 AND id < 900",
        "SELECT value FROM numbers WHERE id % 100 = 3 AND value IS NOT NULL AND id > 50",
        "SELECT count(*) FROM numbers WHERE id >= 0 AND value >= 0",
        "SELECT id, value FROM numbers WHERE id % 7 = 1 AND (value > 100 OR id < 30) AND NULL",
        "SELECT id FROM numbers WHERE id % 1000 = 7 AND 5000 / id > 1",
        "SELECT id FROM numbers WHERE id % 3 = 0 AND id % 5 = 0 LIMIT 4",
        "SELECT id FROM numbers WHERE id % 3 = 0 AND id % 5 = 0 ORDER BY value DESC, id LIMIT 4",
        "SELECT a.id FROM numbers a JOIN numbers b ON a.id = b.value WHERE a.id % 9 = 0 AND b.id % 2 = 1",
    ];
    for batch_rows in [8_192, 100, 7] {
        for partitions in [1, 4] {
            for context in &contexts {
                set_partitions(context, partitions).await;
                run(context, &format!("SET datafusion.execution.batch_size = {batch_rows}")).await;
            }
            for sql in queries {
                let [engine, coscan] = &contexts;
                let mut theirs = run(engine, sql).await;
                let mut ours = run(coscan, sql).await;
                if sql.contains(" LIMIT 4") && !sql.contains("ORDER BY") {
                    assert_eq!(ours.len(), theirs.len(), "{sql}");
                    continue;
                }
                theirs.sort();
                ours.sort();
                assert_eq!(ours, theirs, "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn explain_shows_conditions_and_projections_as_the_engine_does() {
    let (_data, contexts) = contexts().await;
    let sql = "SELECT value FROM numbers WHERE id % 7 = 3 AND value > 5";
    let mut lines = Vec::new();
    for context in &contexts {
        let plan = explain(context, &format!("EXPLAIN {sql}")).await;
        let line =
            plan.lines().find(|line| line.contains("FilterExec:")).unwrap().trim().to_owned();
        lines.push(line);
    }
    assert_eq!(lines[0], lines[1]);
    let plan = explain(&contexts[1], &format!("EXPLAIN ANALYZE {sql}")).await;
    let filter = plan.lines().find(|line| line.contains("FilterExec:")).unwrap();
    assert!(filter.contains("output_rows=") && filter.contains("selectivity="), "{filter}");
}
