//! A sparse scan reads the row groups that may hold its rows, not their whole chunks.

use std::path::Path;
use std::sync::Arc;

use coscan_storage::stores::StoreMetrics;
use datafusion::prelude::SessionContext;

use crate::support::{explain, leaf, partitions, plan, run};

/// A table of ten chunks of twenty row groups each, and the metrics of reads from it.
async fn session(location: &Path) -> (SessionContext, Arc<StoreMetrics>) {
    crate::support::metered(location, 500, |coscan| coscan.with_direct_bytes_max(0)).await
}

#[tokio::test]
async fn a_point_query_reads_one_row_group_with_one_worker() {
    let data = tempfile::tempdir().unwrap();
    let (context, metrics) = session(data.path()).await;
    let point = "SELECT id, text FROM numbers WHERE id = 20100";
    let text = explain(&context, &format!("EXPLAIN {point}")).await;
    assert!(text.contains("chunks=1 of 10 (9 pruned), rows=500,"), "{text}");
    assert_eq!(partitions(&leaf(&plan(&context, point).await)), 1);
    assert_eq!(run(&context, point).await, ["20100 text 20100"]);
    let selected = metrics.snapshot();
    assert_eq!(run(&context, "SELECT count(text) FROM numbers WHERE id < 10000").await, ["10000"]);
    let chunk = metrics.snapshot();
    assert!(selected.bytes * 10 < chunk.bytes - selected.bytes, "{selected:?} {chunk:?}");
}

#[tokio::test]
async fn rows_are_right_whatever_statistics_prune() {
    let data = tempfile::tempdir().unwrap();
    let (context, _) = session(data.path()).await;
    for (filter, count) in [
        ("id = 20100 OR id = 20600", 2),
        ("id IN (499, 500, 9999, 10000)", 4),
        ("id BETWEEN 9990 AND 10009", 20),
        ("id < 3000", 3000),
        ("id > 9700 AND id < 9700", 0),
        ("id = 20100 AND key = 1", 0),
        ("id = 100000", 0),
        ("id IN (SELECT id + 5 FROM numbers WHERE id = 20100)", 1),
    ] {
        let found = run(&context, &format!("SELECT count(*) FROM numbers WHERE {filter}")).await;
        assert_eq!(found, [count.to_string()], "{filter}");
    }
    let text = explain(&context, "EXPLAIN SELECT id FROM numbers WHERE id < 3000").await;
    assert!(!text.contains("rows="), "a large part of a chunk is worth all of it: {text}");
}
