//! Scans obey the settings of their session, even where they share with scans of other sessions.

use std::sync::Arc;

use coscan_datafusion::CoscanOptions;
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;

use crate::support::{TABLE_OPTIONS, create, manager, numbers_directory, plain, plan, run, shared};

/// A session of one partition with batches of `batch_rows` rows.
fn with_batches(manager: &BufferManager, batch_rows: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(batch_rows);
    let context = SessionContext::new_with_config(config);
    let coscan =
        CoscanOptions::new(manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
    coscan.install(&context).unwrap();
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_share_decoded_columns_in_batches_of_their_own_size() {
    let data = numbers_directory(4000);
    let manager = manager(PolicyKind::Relevance);
    let mut streams = Vec::new();
    for batch_rows in [7, 64, 8192] {
        let context = with_batches(&manager, batch_rows);
        create(&context, "numbers", data.path()).await;
        let plan = plan(&context, "SELECT id, text FROM numbers").await;
        assert_eq!(plan.name(), "SharedScanExec");
        streams.push((batch_rows, plan.execute(0, context.task_ctx()).unwrap(), 0));
    }
    // The streams are polled in turns, so that they are at the same chunks.
    let mut running = streams.len();
    while running > 0 {
        running = 0;
        for (batch_rows, stream, rows) in &mut streams {
            let until = *rows + 100;
            while *rows < until {
                let Some(batch) = stream.next().await else { break };
                let batch = batch.unwrap();
                assert!((1..=*batch_rows).contains(&batch.num_rows()), "{}", batch.num_rows());
                *rows += batch.num_rows();
            }
            running += usize::from(*rows >= until);
        }
    }
    assert!(streams.iter().all(|(_, _, rows)| *rows == 4000));
    let report = manager.report();
    assert!(report.slices_reused > 0 && report.slices_decoded < 3 * 2 * 40, "{report:?}");
}

fn text_of(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pushed_down_filters_are_evaluated_by_the_scan() {
    let data = numbers_directory(5000);
    let manager = manager(PolicyKind::Relevance);
    let (plain, context) = (plain(), shared(&manager));
    for context in [&plain, &context] {
        run(context, "SET datafusion.execution.parquet.pushdown_filters = true").await;
        create(context, "numbers", data.path()).await;
    }
    for sql in [
        "SELECT id, text FROM numbers WHERE key = 3 AND value > 100 ORDER BY id",
        "SELECT text FROM numbers WHERE key = 3 OR id < 17 ORDER BY text",
        "SELECT count(*) FROM numbers WHERE key < 5",
        "SELECT count(*) FROM (SELECT id FROM numbers WHERE key = 3 LIMIT 120)",
        "SELECT count(*) FROM (SELECT id FROM numbers WHERE key = 3 LIMIT 0)",
        "SELECT count(*) FROM (SELECT id FROM numbers LIMIT 100) WHERE id >= 0",
        "SELECT max(value), count(*) FROM numbers WHERE id <> 4999",
        "SELECT id FROM numbers WHERE key = 3 ORDER BY id DESC LIMIT 5",
        "SELECT a.id FROM numbers a JOIN numbers b ON a.id = b.key WHERE a.key = 4 AND b.id < 100 ORDER BY a.id",
        "SELECT id FROM numbers WHERE id = (SELECT max(id) FROM numbers WHERE key = 4)",
        "SELECT id FROM numbers WHERE key = 11",
        "SELECT id FROM numbers WHERE nullif(key, 3) > 8 ORDER BY id LIMIT 7",
    ] {
        assert_eq!(run(&context, sql).await, run(&plain, sql).await, "{sql}");
    }
    let sql = "SELECT text FROM numbers WHERE key = 3 AND value > 100";
    let pushed = text_of(&plan(&context, sql).await);
    assert!(!pushed.contains("FilterExec"), "{pushed}");
    assert!(pushed.contains("projection=[text]") && pushed.contains("pushed_filters="), "{pushed}");
    run(&context, "SET datafusion.execution.parquet.pruning = false").await;
    let unpruned = text_of(&plan(&context, sql).await);
    assert!(unpruned.contains("pushed_filters=") && !unpruned.contains("predicate="), "{unpruned}");
    assert_eq!(run(&context, &format!("{sql} ORDER BY 1")).await.len(), 480);
    run(&context, "SET datafusion.execution.parquet.pushdown_filters = false").await;
    let above = text_of(&plan(&context, sql).await);
    assert!(above.contains("FilterExec"), "{above}");
}
