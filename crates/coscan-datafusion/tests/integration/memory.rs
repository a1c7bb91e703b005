//! Operators and the pool draw on one budget.

use std::sync::{Arc, Mutex};

use coscan_datafusion::SharedMemoryPool;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;

use crate::support::{assert_all_frees, create, plan, run, shared};

const MIB: usize = 1 << 20;

/// A manager with a budget of 16 MiB, of which half is the pool and 1 MiB of the pool stays.
fn small() -> BufferManager {
    let options = Options { pool_bytes_min: 1 << 20, ..Options::with_memory_bytes(16 << 20) };
    BufferManager::new(options).unwrap()
}

#[tokio::test]
async fn the_pool_gives_way_down_to_its_floor_and_grows_back() {
    let manager = small();
    let pool = SharedMemoryPool::tracked(&manager);
    assert!(matches!(pool.memory_limit(), MemoryLimit::Finite(bytes) if bytes == 15 * MIB));
    let reservation = MemoryConsumer::new("hungry").register(&pool);
    reservation.try_grow(12 * MIB).unwrap();
    // The pool shrinks in steps, so by a little more than was requested.
    let limit_bytes = manager.report().pool_limit_bytes;
    assert!(((4 << 20) - (128 << 10)..=4 << 20).contains(&limit_bytes), "{limit_bytes}");
    reservation.try_grow(3 * MIB).unwrap();
    assert_eq!(manager.report().pool_limit_bytes, 1 << 20);
    let error = reservation.try_grow(1).unwrap_err().to_string();
    assert!(error.contains("hungry") && error.contains("15.0 MB"), "{error}");
    assert_eq!(pool.reserved(), 15 * MIB);
    drop(reservation);
    assert_eq!(manager.report().pool_limit_bytes, 8 << 20);
    assert_eq!((pool.reserved(), manager.report().operator_bytes), (0, 0));
}

#[tokio::test]
async fn memory_taken_without_asking_is_counted() {
    let manager = small();
    let pool = SharedMemoryPool::tracked(&manager);
    let reservation = MemoryConsumer::new("sure").register(&pool);
    reservation.grow(20 * MIB);
    assert_eq!(manager.report().operator_bytes, 20 << 20);
    assert_eq!(manager.report().pool_limit_bytes, 1 << 20);
    reservation.shrink(20 * MIB);
    assert_eq!(manager.report().operator_bytes, 0);
}

#[tokio::test]
async fn operators_that_spill_leave_the_others_their_share() {
    let manager = small();
    let pool = SharedMemoryPool::tracked(&manager);
    let spilling = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
    let (first, second) = (spilling("first"), spilling("second"));
    // A share is no limit while there is plenty of memory.
    first.try_grow(5 * MIB).unwrap();
    first.try_grow(MIB).unwrap_err();
    second.try_grow(2 * MIB).unwrap();
    second.try_grow(MIB).unwrap_err();
    // Shares do not apply to other consumers.
    let fixed = MemoryConsumer::new("fixed").register(&pool);
    fixed.try_grow(7 * MIB).unwrap();
    drop(second);
    first.try_grow(MIB / 2).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_that_needs_more_than_the_budget_spills_and_is_right() {
    let data = tempfile::tempdir().unwrap();
    crate::support::write(
        &data.path().join("numbers.parquet"),
        &crate::support::numbers(0..200_000),
        10_000,
    );
    let manager = small();
    let context = shared(&manager);
    create(&context, "numbers", data.path()).await;
    // Each sort keeps this much for merging the spilled rows. The default is meant for larger
    // budgets.
    run(&context, "SET datafusion.execution.sort_spill_reservation_bytes = 1000000").await;
    // More sorts at once may take all memory for their merges, also on the engine alone.
    run(&context, "SET datafusion.execution.target_partitions = 1").await;
    let sql = "SELECT text, id, value, key FROM numbers ORDER BY text DESC, id";
    let plan = plan(&context, sql).await;
    let rows = collect(plan.clone(), context.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 200_000);
    let mut spills = 0;
    let mut nodes = vec![plan];
    while let Some(node) = nodes.pop() {
        spills += node.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
        nodes.extend(node.children().into_iter().cloned());
    }
    assert!(spills > 0, "the sort spilled");
    drop(rows);
    let report = manager.report();
    assert!(report.held_bytes_max <= report.memory_bytes + (2 << 20), "{report:?}");
    assert_eq!(report.pool_limit_bytes, 8 << 20, "the pool has grown back");
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_cannot_spill_fails_clearly_and_frees_what_it_held() {
    let data = tempfile::tempdir().unwrap();
    crate::support::write(
        &data.path().join("numbers.parquet"),
        &crate::support::numbers(0..300_000),
        10_000,
    );
    let manager = small();
    let context = shared(&manager);
    create(&context, "numbers", data.path()).await;
    let sql = "SELECT count(*) FROM numbers a JOIN numbers b ON a.text = b.text || 'x' AND a.value > b.value";
    let error = crate::support::slt::run(&context, sql).await.unwrap_err().to_string();
    assert!(error.contains("Resources exhausted"), "{error}");
    assert_all_frees(&manager).await;
    assert_eq!(run(&context, "SELECT sum(id) FROM numbers").await, ["44999850000"]);
}

/// The pool of the queries below: half of their table.
const POOL_BYTES: u64 = 200_000;

/// Alternately reduces the pool to a tenth and restores it, each time after a number of further batches.
struct Resizing {
    manager: BufferManager,
    batches: Mutex<usize>,
}

impl Resizing {
    fn batch_arrived(&self) {
        let mut batches = self.batches.lock().unwrap();
        *batches += 1;
        let before = self.manager.report();
        assert!(before.pool_held_bytes <= before.pool_limit_bytes, "{before:?}");
        match *batches % 100 {
            50 => self.manager.set_pool_bytes(POOL_BYTES / 10).unwrap(),
            0 => {
                // Pages in use or being read may take more than a tenth.
                assert!(before.pool_limit_bytes <= POOL_BYTES / 2, "it is small: {before:?}");
                self.manager.set_pool_bytes(POOL_BYTES).unwrap();
            }
            _ => {}
        }
    }

    /// The sorted rows of a query, each as text.
    async fn run(&self, context: &SessionContext, sql: &str) -> Vec<String> {
        let stream = context.sql(sql).await.unwrap().execute_stream().await.unwrap();
        let count = stream.inspect_ok(|_| self.batch_arrived());
        let mut rows =
            crate::support::slt::rows(&count.try_collect::<Vec<_>>().await.unwrap()).unwrap();
        rows.sort_unstable();
        rows
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_shrinks_and_grows_under_sixteen_streams_changes_no_answer() {
    const QUERIES: [&str; 4] = [
        "SELECT id, text FROM numbers WHERE id % 3 = 0",
        "SELECT key, count(*), sum(value), min(text) FROM numbers GROUP BY key",
        "SELECT id, value FROM numbers WHERE id BETWEEN 2500 AND 7500",
        "SELECT text FROM numbers",
    ];
    let data = crate::support::numbers_directory(10_000);
    let plain = crate::support::plain();
    create(&plain, "numbers", data.path()).await;
    let mut expected = Vec::new();
    for sql in QUERIES {
        expected.push(run(&plain, sql).await);
        expected.last_mut().unwrap().sort_unstable();
    }
    for policy in PolicyKind::ALL {
        let memory_bytes = POOL_BYTES + (2 << 20);
        let options = Options { memory_bytes, ..Options::with_pool_bytes(POOL_BYTES, 1 << 20) };
        let manager = BufferManager::new(options.policy(policy)).unwrap();
        let context = shared(&manager);
        create(&context, "numbers", data.path()).await;
        run(&context, "SET datafusion.execution.batch_size = 100").await;
        let resizing = Arc::new(Resizing { manager: manager.clone(), batches: Mutex::new(0) });
        let streams: Vec<_> = (0..16)
            .map(|stream| {
                let (context, expected) = (context.clone(), expected.clone());
                let resizing = Arc::clone(&resizing);
                tokio::spawn(async move {
                    for query in (stream..stream + 2).map(|query| query % QUERIES.len()) {
                        let rows = resizing.run(&context, QUERIES[query]).await;
                        assert_eq!(rows, expected[query], "{policy}: {}", QUERIES[query]);
                    }
                })
            })
            .collect();
        for stream in streams {
            stream.await.unwrap();
        }
        assert!(*resizing.batches.lock().unwrap() > 1_000, "the pool changed often");
        manager.set_pool_bytes(POOL_BYTES).unwrap();
        let report = manager.report();
        assert_eq!(report.pool_limit_bytes, POOL_BYTES, "{policy}: {report:?}");
        assert!(report.held_bytes_max <= report.memory_bytes, "{policy}: {report:?}");
        assert_all_frees(&manager).await;
    }
}
