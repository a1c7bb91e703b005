//! A top-k reads the chunks that may hold its rows first, and no others if those are enough.

use std::path::Path;
use std::sync::Arc;

use coscan_runtime::core::PolicyKind;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;

use crate::support::{
    create, create_ordered, explain, leaf, manager, metric, plain, plan, run, set_partitions,
    shared,
};

/// A session with this many partitions in which `events` has three files of 20 chunks in total. Among files, `id` is
/// shuffled but clustered by chunk, `tenant` is the same everywhere, and `late` has nulls in the first chunk of each
/// file.
async fn session(location: &Path, partitions: usize) -> SessionContext {
    for file in 0..3i64 {
        // Chunk c of the table has the ids from 100 * ((7 * c) % 20) on.
        let chunks = (0..20).filter(|chunk| chunk % 3 == file);
        let ids: Vec<_> = chunks
            .flat_map(|chunk| (0..100).map(move |row| 100 * ((7 * chunk) % 20) + row))
            .collect();
        let late =
            ids.iter().enumerate().map(|(row, id)| (row >= 100 || row % 2 == 0).then_some(*id));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(ids.iter().copied().collect::<Int64Array>())),
            ("tenant", Arc::new(ids.iter().map(|_| 7).collect::<Int64Array>())),
            ("late", Arc::new(late.collect::<Int64Array>())),
            ("spread", Arc::new(ids.iter().map(|id| id * 7919 % 2003).collect::<Int64Array>())),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        crate::support::write(&location.join(format!("{file}.parquet")), &batch, 100);
    }
    let context = shared(&manager(PolicyKind::Relevance));
    set_partitions(&context, partitions).await;
    // A filter passes rows on only in full batches.
    run(&context, "SET datafusion.execution.batch_size = 16").await;
    create(&context, "events", location).await;
    context
}

/// The number of chunks, of 20, that a query was handed. Checks that its rows are those of plain DataFusion.
async fn delivered(context: &SessionContext, location: &Path, sql: &str) -> usize {
    let plain = plain();
    create(&plain, "events", location).await;
    let plan = plan(context, sql).await;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(crate::support::slt::rows(&batches).unwrap(), run(&plain, sql).await, "{sql}");
    let scan = leaf(&plan);
    let (needed, pruned) =
        (metric(&scan, "chunks_needed"), metric(&scan, "chunks_pruned_dynamic_filter"));
    assert_eq!(metric(&scan, "chunks_delivered") + pruned, needed, "{sql}");
    metric(&scan, "chunks_delivered")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_latest_rows_are_read_first() {
    let data = tempfile::tempdir().unwrap();
    let context = session(data.path(), 1).await;
    for (sql, chunks) in [
        ("SELECT id FROM events ORDER BY id DESC LIMIT 5", 1..=1),
        ("SELECT id, spread FROM events ORDER BY id LIMIT 5", 1..=1),
        ("SELECT id + 1 AS next, spread FROM events ORDER BY id DESC LIMIT 5", 1..=1),
        ("SELECT id FROM events WHERE spread % 2 = 0 ORDER BY id DESC LIMIT 5", 1..=1),
        ("SELECT spread FROM events WHERE spread > 3 ORDER BY id DESC LIMIT 5", 1..=1),
        // The rows are in two chunks, and two are read after the first one.
        ("SELECT id FROM events ORDER BY id DESC LIMIT 150", 2..=3),
        ("SELECT id FROM events ORDER BY tenant, id DESC LIMIT 5", 1..=1),
        // Three chunks have nulls, which come first. One null is as good as another.
        ("SELECT late FROM events ORDER BY late DESC LIMIT 5", 1..=3),
        ("SELECT late FROM events ORDER BY late DESC NULLS LAST LIMIT 5", 1..=3),
        ("SELECT id FROM events ORDER BY spread LIMIT 5", 5..=20),
        ("SELECT id FROM events ORDER BY -id LIMIT 5", 1..=20),
    ] {
        let count = delivered(&context, data.path(), sql).await;
        assert!(chunks.contains(&count), "{sql}: {count} chunks");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_partition_begins_with_one_of_the_latest() {
    let data = tempfile::tempdir().unwrap();
    let context = session(data.path(), 4).await;
    for _ in 0..10 {
        let sql = "SELECT id FROM events ORDER BY id DESC LIMIT 5";
        let count = delivered(&context, data.path(), sql).await;
        // A partition may start before the partition with the latest rows has found them.
        assert!(count < 20, "{count} chunks");
    }
}

#[tokio::test]
async fn explain_shows_the_order_of_the_top_k() {
    let data = tempfile::tempdir().unwrap();
    let context = session(data.path(), 4).await;
    for (order, shown) in [
        ("id DESC", "top_k_order=[id DESC]"),
        ("id", "top_k_order=[id ASC]"),
        ("tenant DESC NULLS LAST, id", "top_k_order=[tenant DESC NULLS LAST, id ASC]"),
        ("id ASC NULLS FIRST, spread + 1", "top_k_order=[id ASC NULLS FIRST]"),
    ] {
        for filter in ["", "WHERE spread > 7"] {
            let sql = format!("EXPLAIN SELECT * FROM events {filter} ORDER BY {order} LIMIT 5");
            let text = explain(&context, &sql).await;
            assert!(text.contains(shown), "{shown}: {text}");
        }
    }
    let text = explain(&context, "EXPLAIN SELECT * FROM events ORDER BY id + 1 LIMIT 5").await;
    assert!(!text.contains("top_k_order"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_declares_an_order_is_read_from_its_end() {
    let data = crate::support::numbers_directory(4600);
    let context = shared(&manager(PolicyKind::Relevance));
    create_ordered(&context, "sorted", "id", data.path()).await;
    set_partitions(&context, 1).await;
    let sql = "SELECT id FROM sorted ORDER BY id DESC LIMIT 3";
    let plan = plan(&context, sql).await;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(crate::support::slt::rows(&batches).unwrap(), ["4599", "4598", "4597"]);
    assert_eq!(metric(&leaf(&plan), "chunks_delivered"), 1);
    let text = explain(&context, "EXPLAIN SELECT id FROM sorted ORDER BY id LIMIT 3").await;
    assert!(text.contains("order=table") && !text.contains("top_k_order"), "{text}");
}
