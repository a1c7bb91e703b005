//! Executions of a scan: shared by its partitions, alone, twice, ended early, and many at the same time.

use std::sync::Arc;

use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::physical_plan::{collect, execute_stream};
use futures::{StreamExt, TryStreamExt};

use crate::support::{
    assert_all_frees, ids, leaf, metric, numbers_table, numbers_table_of, partitions, plan, run,
};

const ROWS: i64 = 5000;

fn all_ids() -> Vec<i64> {
    (0..ROWS).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_partitions_of_a_plan_share_one_scan() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let plan = plan(&context, "SELECT id FROM numbers").await;
    assert_eq!(partitions(&plan), 4);
    let task = context.task_ctx();
    let mut streams: Vec<_> =
        (0..4).map(|partition| plan.execute(partition, Arc::clone(&task)).unwrap()).collect();
    let mut first = Vec::new();
    for stream in &mut streams {
        first.push(stream.next().await.unwrap().unwrap());
    }
    assert_eq!(manager.report().scans, 1);
    for stream in streams {
        first.extend(stream.try_collect::<Vec<_>>().await.unwrap());
    }
    assert_eq!(ids(&first), all_ids());
    assert_eq!(metric(&plan, "chunks_delivered"), 50);
    drop(first);
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_plan_can_be_executed_twice() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let plan = plan(&context, "SELECT id FROM numbers").await;
    let task = context.task_ctx();
    for _ in 0..2 {
        let batches = collect(Arc::clone(&plan), Arc::clone(&task)).await.unwrap();
        assert_eq!(ids(&batches), all_ids());
    }
    assert_eq!(metric(&plan, "chunks_delivered"), 100);
    let streams = (0..2).map(|_| execute_stream(Arc::clone(&plan), context.task_ctx()).unwrap());
    let both = futures::future::try_join_all(streams.map(TryStreamExt::try_collect::<Vec<_>>));
    for batches in both.await.unwrap() {
        assert_eq!(ids(&batches), all_ids());
    }
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_reset_plan_starts_anew() {
    let (_data, _manager, context) = numbers_table(ROWS).await;
    let plan = leaf(&plan(&context, "SELECT id FROM numbers").await);
    let task = context.task_ctx();
    let first = plan.execute(0, Arc::clone(&task)).unwrap();
    let reset = Arc::clone(&plan).reset_state().unwrap();
    let mut second = Vec::new();
    for partition in 0..4 {
        let stream = reset.execute(partition, Arc::clone(&task)).unwrap();
        second.extend(stream.try_collect::<Vec<_>>().await.unwrap());
    }
    assert_eq!(ids(&second), all_ids());
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_frees_everything_at_once() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    assert_eq!(run(&context, "SELECT id FROM numbers LIMIT 1").await.len(), 1);
    let plan = plan(&context, "SELECT id, text FROM numbers LIMIT 150").await;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 150);
    assert_eq!(leaf(&plan).fetch(), Some(150));
    assert!(metric(&leaf(&plan), "chunks_delivered") <= 8, "no worker takes more than it may give");
    drop(batches);
    // The plan is still alive.
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_stream_frees_everything_at_once() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let plan = plan(&context, "SELECT * FROM numbers WHERE value > 0").await;
    let mut stream = execute_stream(Arc::clone(&plan), context.task_ctx()).unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.num_rows() > 0);
    drop((stream, first));
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_queries_at_once_give_the_right_answers_on_each_policy() {
    for policy in PolicyKind::ALL {
        // Room for about five chunks.
        let options = coscan_runtime::Options::with_pool_bytes(16 << 10, 64 << 20).policy(policy);
        let manager = BufferManager::new(options).unwrap();
        let (_data, manager, context) = numbers_table_of(manager, ROWS).await;
        let queries = (0..24).map(|query| {
            let context = context.clone();
            tokio::spawn(async move {
                let (start, end) = (query * 100, ROWS - query * 50);
                let sql = format!(
                    "SELECT count(*), sum(id), max(text) FROM numbers WHERE id >= {start} AND id < {end} AND key <> 11"
                );
                let sum = (start..end).sum::<i64>();
                let text = (start..end).map(|id| format!("text {id}")).max().unwrap();
                let expected = format!("{} {sum} {text}", end - start);
                assert_eq!(run(&context, &sql).await, [expected], "{policy}");
            })
        });
        futures::future::try_join_all(queries).await.unwrap();
        assert_all_frees(&manager).await;
    }
}

#[tokio::test]
async fn a_read_that_fails_is_an_error_with_the_name_of_the_file() {
    let (data, manager, context) = numbers_table(ROWS).await;
    let path = data.path().join("numbers.parquet");
    std::fs::write(&path, vec![7; std::fs::metadata(&path).unwrap().len() as usize]).unwrap();
    let query = context.sql("SELECT sum(value) FROM numbers").await.unwrap();
    let error = query.collect().await.unwrap_err().to_string();
    assert!(error.contains("numbers.parquet") && error.contains("changed"), "{error}");
    assert_all_frees(&manager).await;
}

#[tokio::test]
async fn a_pool_smaller_than_a_chunk_is_a_clear_error() {
    let options = coscan_runtime::Options::with_pool_bytes(100, 64 << 20);
    let manager = BufferManager::new(options).unwrap();
    let (_data, _manager, context) = numbers_table_of(manager, ROWS).await;
    let query = context.sql("SELECT sum(value) FROM numbers").await.unwrap();
    let error = query.collect().await.unwrap_err().to_string();
    assert!(error.contains("Resources exhausted") && error.contains("100 bytes"), "{error}");
}

#[tokio::test]
async fn batches_have_the_declared_schema() {
    let (_data, _manager, context) = numbers_table(ROWS).await;
    let sql = "SELECT text, id FROM numbers";
    let plan = plan(&context, sql).await;
    assert_eq!(plan.name(), "SharedScanExec", "column-only projections are taken over");
    for batch in collect(Arc::clone(&plan), context.task_ctx()).await.unwrap() {
        assert_eq!(batch.schema(), plan.schema());
        assert_eq!(batch.column(0).len(), batch.num_rows());
    }
}
