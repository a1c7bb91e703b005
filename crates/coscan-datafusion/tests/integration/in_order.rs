//! Several tasks work on the chunks of tables that are read in order, and the rows are still in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::table::FileOptions;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use tempfile::TempDir;

use crate::support::{
    assert_all_frees, create_ordered, explain, manager, metric, plain, plan, run, set_partitions,
    shared,
};

/// Creates tables with chunks of a hundred rows: `up` and `other` in the order of `id`, `down` in the opposite order,
/// `nulls` in the order of `id` with NULLs first, and `pairs`, in which each `id` has several rows, across chunks, each
/// with another `n`.
async fn create_tables(context: &SessionContext, directory: &Path) {
    // A task has at least a batch of rows.
    run(context, "SET datafusion.execution.batch_size = 100").await;
    for (table, order) in [
        ("up", "id"),
        ("other", "id"),
        ("down", "id DESC"),
        ("nulls", "id ASC NULLS FIRST"),
        ("pairs", "id, n"),
    ] {
        let location = directory.join(format!("{table}.parquet"));
        create_ordered(context, table, order, &location).await;
    }
}

fn write_tables() -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path();
    let write = |name: &str, ids: Vec<Option<i64>>, repeats: i64| {
        let n = (0..ids.len() as i64).map(|row| row % repeats).collect::<Int64Array>();
        let text = ids.iter().map(|id| id.map(|id| format!("text {}", id * 37 % 101)));
        let text = text.collect::<StringArray>();
        let columns: [(&str, ArrayRef); 3] =
            [("id", Arc::new(Int64Array::from(ids))), ("n", Arc::new(n)), ("text", Arc::new(text))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        crate::support::write(&directory.join(format!("{name}.parquet")), &batch, 100);
    };
    write("up", (0..2350).map(Some).collect(), 7);
    write("other", (0..1777).map(|id| Some(id * 2)).collect(), 5);
    write("down", (0..1930).rev().map(Some).collect(), 3);
    let nulls = std::iter::repeat_n(None, 330);
    write("nulls", nulls.chain((0..1100).map(Some)).collect(), 3);
    write("pairs", (0..2100).map(|row| Some(row / 7)).collect(), 7);
    data
}

/// A session in which every scan is shared, with the tables.
async fn shared_tables() -> (TempDir, BufferManager, SessionContext) {
    let (data, manager) = (write_tables(), manager(PolicyKind::Relevance));
    let context = shared(&manager);
    create_tables(&context, data.path()).await;
    (data, manager, context)
}

/// Queries that several tasks work on, if several are allowed.
const IN_TASKS: [&str; 4] = [
    "SELECT id, text FROM up WHERE text LIKE '%7%' ORDER BY id",
    "SELECT id * 2 + n, id FROM up ORDER BY id",
    "SELECT id, upper(text) FROM up WHERE n > 2 AND id % 3 = 1 ORDER BY id",
    "SELECT id + 1 FROM up WHERE id BETWEEN 433 AND 1250 ORDER BY id",
];

/// Other queries whose rows have one order.
const OTHERS: [&str; 16] = [
    "SELECT id, n FROM up WHERE text LIKE '%none%' ORDER BY id",
    "SELECT id, text FROM down WHERE n <> 1 ORDER BY id DESC",
    "SELECT id, n, text FROM nulls WHERE n <> 1 OR id > 5 ORDER BY id NULLS FIRST, n",
    "SELECT id, text || 'x' FROM nulls WHERE id IS NULL OR id > 17 ORDER BY id NULLS FIRST",
    "SELECT id, n, text FROM pairs WHERE text LIKE '%3%' ORDER BY id, n",
    "SELECT id, sum(n) OVER (ORDER BY id ROWS 10 PRECEDING) FROM up WHERE n <> 3 ORDER BY id",
    "SELECT id, n, lag(text) OVER (PARTITION BY id ORDER BY n) FROM pairs WHERE n <> 2 ORDER BY id, n",
    "SELECT sum(r), max(t) FROM (SELECT row_number() OVER (PARTITION BY id ORDER BY n) AS r, \
         max(text) OVER (PARTITION BY id) AS t FROM pairs WHERE n <> 4)",
    "SELECT id FROM (SELECT id FROM up WHERE n = 2 UNION ALL SELECT id FROM other WHERE n = 3) ORDER BY id",
    "SELECT s FROM (SELECT id, sum(n) OVER (ORDER BY id ROWS 3 PRECEDING) AS s FROM up WHERE n > 1) \
         GROUP BY s ORDER BY s LIMIT 5",
    "SELECT id, text FROM up ORDER BY id LIMIT 250",
    "SELECT id * 2 FROM up ORDER BY id LIMIT 17",
    "SELECT id, sum(n) OVER (ORDER BY id ROWS 10 PRECEDING) FROM up WHERE n <> 3 ORDER BY id LIMIT 17",
    "SELECT id, count(*) FROM pairs WHERE text LIKE '%3%' GROUP BY id ORDER BY id LIMIT 10",
    "SELECT max(x) FROM (SELECT id % 10 AS x FROM up ORDER BY id LIMIT 100)",
    "SELECT id FROM up WHERE id = 433 ORDER BY id",
];

fn two_chunks() -> BufferManager {
    // A chunk of `up` takes about 5 kB.
    BufferManager::new(Options::with_pool_bytes(10_000, 256 << 20)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_and_their_order_are_those_of_plain_datafusion() {
    let data = write_tables();
    let reference = plain();
    create_tables(&reference, data.path()).await;
    for manager in [manager(PolicyKind::Relevance), manager(PolicyKind::Normal), two_chunks()] {
        let context = shared(&manager);
        create_tables(&context, data.path()).await;
        for partitions in [1, 2, 4, 8] {
            set_partitions(&context, partitions).await;
            for sql in IN_TASKS {
                let text = explain(&context, &format!("EXPLAIN {sql}")).await;
                let tasks = format!("InOrderExec: tasks={partitions}");
                assert_eq!(text.contains(&tasks), partitions > 1, "{text}");
            }
            for sql in IN_TASKS.into_iter().chain(OTHERS) {
                assert_eq!(run(&context, sql).await, run(&reference, sql).await, "{sql}");
            }
        }
        assert_all_frees(&manager).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sort_merge_joins_of_tables_in_order() {
    let data = write_tables();
    let reference = plain();
    create_tables(&reference, data.path()).await;
    for manager in [manager(PolicyKind::Relevance), two_chunks()] {
        let context = shared(&manager);
        create_tables(&context, data.path()).await;
        run(&context, "SET datafusion.optimizer.prefer_hash_join = false").await;
        for partitions in [2, 4, 8] {
            set_partitions(&context, partitions).await;
            for join in ["JOIN", "LEFT JOIN", "FULL JOIN"] {
                let sql = format!(
                    "SELECT a.id, b.id, a.text || b.text FROM up a {join} (SELECT id, text FROM other WHERE n <> 2) b \
                     ON a.id = b.id ORDER BY 1, 2"
                );
                let text = explain(&context, &format!("EXPLAIN {sql}")).await;
                assert!(text.contains("SortMergeJoinExec"), "{text}");
                assert!(text.contains("InOrderExec"), "{text}");
                assert_eq!(run(&context, &sql).await, run(&reference, &sql).await, "{sql}");
            }
        }
        assert_all_frees(&manager).await;
    }
}

/// The only operator of this name in a plan.
fn operator(plan: &Arc<dyn ExecutionPlan>, name: &str) -> Option<Arc<dyn ExecutionPlan>> {
    if plan.name() == name {
        return Some(Arc::clone(plan));
    }
    plan.children().into_iter().find_map(|child| operator(child, name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_reads_no_more_with_more_partitions() {
    for sql in [
        "SELECT id + key FROM numbers ORDER BY id LIMIT 5000",
        "SELECT sum(id) OVER (ORDER BY id ROWS 10 PRECEDING) FROM numbers WHERE key <> 3 LIMIT 5000",
        "SELECT id, count(*) FROM numbers GROUP BY id ORDER BY id LIMIT 5",
    ] {
        let mut bytes = Vec::new();
        for partitions in [1, 8] {
            let data = tempfile::tempdir().unwrap();
            let (context, metrics) = crate::support::metered(data.path(), 10_000, |coscan| {
                coscan.with_direct_bytes_max(0)
            })
            .await;
            run(&context, "DROP TABLE numbers").await;
            let location = data.path().join("numbers.parquet");
            create_ordered(&context, "numbers", "id", &location).await;
            set_partitions(&context, partitions).await;
            metrics.reset();
            run(&context, sql).await;
            bytes.push(metrics.snapshot().bytes);
        }
        assert!(bytes[0] > 0 && bytes[1] <= bytes[0], "{sql}: {bytes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_give_chunks_back_to_queries_that_need_their_memory() {
    let data = tempfile::tempdir().unwrap();
    let location = data.path().join("numbers.parquet");
    crate::support::write(&location, &crate::support::numbers(0..200_000), 20_000);
    let options = Options {
        memory_timeout: Duration::from_secs(30),
        pool_bytes_min: 1 << 20,
        ..Options::with_memory_bytes(8 << 20)
    };
    let manager = BufferManager::new(options).unwrap();
    let context = plain();
    let options = FileOptions { chunk_rows: 20_000, ..FileOptions::default() };
    CoscanOptions::new(&manager).with_table_options(options).install(&context).unwrap();
    create_ordered(&context, "numbers", "id", &location).await;
    set_partitions(&context, 8).await;
    // Many chunks cannot have one task each, since their memory exceeds the budget.
    let sql = "SELECT id, text || '!', key, value FROM numbers WHERE key < 9 ORDER BY id";
    let paused = plan(&context, sql).await;
    let mut rows = execute_stream(Arc::clone(&paused), context.task_ctx()).unwrap();
    let mut ids = crate::support::ids_of(&rows.try_next().await.unwrap().unwrap());
    // Before a second task has a chunk, there is none to give back.
    let holds_chunks = async {
        while manager.scans().iter().all(|scan| scan.workers_busy < 2) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), holds_chunks).await.unwrap();
    // It takes no rows while other queries run, also while one needs its table in order. How soon their memory is short
    // depends on how far its tasks are.
    set_partitions(&context, 2).await;
    let in_order = operator(&paused, "InOrderExec").unwrap();
    let others = async {
        while metric(&in_order, "chunks_given_back") == 0 {
            assert_eq!(run(&context, "SELECT sum(id), max(text) FROM numbers").await.len(), 1);
            let sql = "SELECT count(*) FROM (SELECT sum(key) OVER (ORDER BY id ROWS 5 PRECEDING) FROM numbers WHERE key > 1)";
            assert_eq!(run(&context, sql).await, ["160000"]);
        }
    };
    let given_back = tokio::time::timeout(Duration::from_secs(120), others).await;
    given_back.expect("tasks give chunks back while memory is short");
    while let Some(batch) = rows.try_next().await.unwrap() {
        ids.extend(crate::support::ids_of(&batch));
    }
    assert_eq!(ids, (0..200_000).filter(|id| id % 10 < 9).collect::<Vec<_>>());
    let report = manager.report();
    assert!(report.held_bytes_max <= report.memory_bytes + (1 << 20), "{report:?}");
    drop(rows);
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_is_dropped_frees_what_its_tasks_hold() {
    let (_data, manager, context) = shared_tables().await;
    let plan = plan(&context, "SELECT id * 2 FROM up WHERE n < 5 ORDER BY id").await;
    for batches in 0..5 {
        let mut rows = execute_stream(Arc::clone(&plan), context.task_ctx()).unwrap();
        for _ in 0..batches {
            rows.try_next().await.unwrap().unwrap();
        }
        drop(rows);
        assert_all_frees(&manager).await;
    }
    // A plan may be executed any number of times, also at the same time.
    let [first, second] = [0, 1].map(|_| execute_stream(Arc::clone(&plan), context.task_ctx()));
    let (first, second) = (first.unwrap(), second.unwrap());
    let (first, second): (Vec<_>, Vec<_>) =
        tokio::try_join!(first.try_collect(), second.try_collect()).unwrap();
    let ids = |batches: &[RecordBatch]| {
        batches.iter().flat_map(crate::support::ids_of).collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..2350).filter(|id| id % 7 < 5).map(|id| id * 2).collect();
    assert_eq!((ids(&first), ids(&second)), (expected.clone(), expected));
    drop((first, second));
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_have_at_most_as_many_rows_as_the_session_wants() {
    let (_data, _manager, context) = shared_tables().await;
    run(&context, "SET datafusion.execution.batch_size = 30").await;
    let sql = IN_TASKS[1];
    let text = explain(&context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("InOrderExec"), "{text}");
    let plan = plan(&context, sql).await;
    let batches: Vec<_> =
        execute_stream(plan, context.task_ctx()).unwrap().try_collect().await.unwrap();
    let rows: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!((rows.iter().sum(), rows.iter().max()), (2350, Some(&30)));
}
