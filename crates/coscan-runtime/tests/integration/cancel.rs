//! A scan, stream or worker that stops, at whatever point, holds nothing afterwards and harms no other.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, are_rows, assert_free, assert_idle, ids, in_time, manager,
    manager_with, until,
};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{
    BufferManager, Options, Scan, ScanError, ScanRequest, ScanStream, SharedTable,
};
use coscan_testing::Faults;
use futures::future::join_all;
use futures::{FutureExt, StreamExt};

const ROWS: u64 = 12 * CHUNK_ROWS;

/// A manager, and a table whose reads pass a gate.
async fn gated(options: Options) -> (BufferManager, SharedTable, Faults) {
    let (gate, table) = Fixture::new(ROWS).await.table_with_faults().await;
    let manager = manager_with(options);
    let table = manager.register(table);
    gate.close();
    (manager, table, gate)
}

fn large() -> Options {
    Options { batch_rows: 100, ..Options::with_pool_bytes(LARGE, LARGE) }
}

fn scan(manager: &BufferManager, table: &SharedTable, columns: &[usize]) -> ScanStream {
    manager.scan(table, columns, &[0..ROWS]).unwrap()
}

/// A scan of all rows for some workers.
fn start_scan(
    manager: &BufferManager,
    table: &SharedTable,
    workers: usize,
    columns: &[usize],
) -> Arc<Scan> {
    let request = ScanRequest { workers, ..ScanRequest::of_columns(table, columns.to_vec()) };
    manager.start_scan(table, request).unwrap()
}

/// Polls a stream once; it has to wait.
fn assert_waits(stream: &mut ScanStream) {
    assert!(stream.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_dropped_within_a_chunk_frees_all() {
    for policy in PolicyKind::ALL {
        let manager =
            manager_with(Options { batch_rows: 100, ..manager(policy, LARGE).options().clone() });
        let table = manager.register(Fixture::new(ROWS).await.table().await);
        let (mut first, second) = (scan(&manager, &table, &[0, 2]), scan(&manager, &table, &[0]));
        in_time(first.next()).await.unwrap().unwrap();
        assert!(manager.report().decoded_bytes > 0);
        drop(first);
        assert!(are_rows(in_time(ids(second)).await, 0..ROWS), "{policy}");
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_dropped_while_its_load_is_in_flight_leaves_the_load_to_others() {
    let (manager, table, gate) = gated(large()).await;
    let mut first = scan(&manager, &table, &[0]);
    assert_waits(&mut first);
    assert!(manager.report().loads_in_flight > 0, "the loads are for the first scan");
    let mut second = scan(&manager, &table, &[0]);
    assert_waits(&mut second);
    drop(first);
    assert_eq!(manager.report().scans, 1);
    gate.open();
    assert!(are_rows(in_time(ids(second)).await, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_dropped_while_it_waits_frees_all_when_its_loads_end() {
    let (manager, table, gate) = gated(large()).await;
    let mut stream = scan(&manager, &table, &[0, 1, 2]);
    assert_waits(&mut stream);
    drop(stream);
    assert_eq!(manager.report().scans, 0);
    gate.open();
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_that_no_scan_needs_any_more_is_given_up() {
    let (manager, table, _closed) = gated(large()).await;
    let mut stream = scan(&manager, &table, &[0]);
    assert_waits(&mut stream);
    drop(stream);
    let started = tokio::time::Instant::now();
    assert_free(&manager).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

/// The memory that operators can have: all but the floor of the pool, and the memory of the table.
fn beside_pool_bytes(manager: &BufferManager) -> u64 {
    let Options { memory_bytes, pool_bytes_min, .. } = manager.options();
    memory_bytes - pool_bytes_min - manager.report().metadata_bytes
}

#[tokio::test(start_paused = true)]
async fn a_stream_dropped_while_it_waits_for_memory_lets_others_have_it() {
    let (manager, table, gate) = gated(large()).await;
    gate.open();
    let operators = manager.operator_memory();
    let rest = beside_pool_bytes(&manager);
    assert!(operators.try_take(rest - 1));
    let mut first = scan(&manager, &table, &[0, 1]);
    let mut second = scan(&manager, &table, &[0, 1]);
    for stream in [&mut first, &mut second] {
        // Its chunk arrives long before memory is given up for it.
        let waited = tokio::time::timeout(Duration::from_secs(5), stream.next()).await;
        assert!(waited.is_err(), "there is no memory");
    }
    assert_eq!(manager.report().chunks_in_use, 0, "who waits for memory keeps no pages");
    drop(first);
    assert_eq!(manager.report().scans, 1);
    operators.give(rest - 1);
    assert!(are_rows(in_time(ids(second)).await, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_chunk_handed_to_a_stream_that_is_dropped_unpolled_returns() {
    let (manager, table, gate) = gated(large()).await;
    let mut stream = scan(&manager, &table, &[0, 1]);
    assert_waits(&mut stream);
    gate.open();
    until(|| manager.report().chunks_in_use > 0).await;
    drop(stream);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_scan_ends_all_its_workers() {
    let (manager, table, gate) = gated(large()).await;
    let scan = start_scan(&manager, &table, 3, &[0, 2]);
    let mut workers: Vec<_> = (0..3).map(|worker| scan.worker(worker)).collect();
    // One works on a chunk, two have asked for one.
    gate.open();
    in_time(workers[0].next()).await.unwrap().unwrap();
    gate.close();
    let asked = workers[1..].iter_mut().map(|worker| worker.next().now_or_never());
    assert!(asked.flatten().flatten().all(|batch| batch.is_ok()));
    let mut other = manager.scan(&table, &[1], &[0..ROWS]).unwrap();
    assert_waits(&mut other);
    scan.cancel();
    assert_eq!(manager.report().scans, 1, "the other scan");
    for worker in workers {
        // A worker may finish a chunk that it was handed.
        let end = in_time(ids(worker)).await.map(|ids| ids.len());
        assert!(matches!(end, Err(ScanError::Cancelled)), "{end:?}");
    }
    assert!(scan.metrics().chunks.chunks_delivered >= 1, "metrics outlive the scan");
    gate.open();
    let halves = in_time(ids(other)).await.map(|ids| ids.iter().map(|id| id / 2).collect());
    assert!(are_rows(halves, 0..ROWS));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_scan_wakes_workers_that_wait_for_a_chunk() {
    let (manager, table, gate) = gated(large()).await;
    let scan = start_scan(&manager, &table, 3, &[0]);
    let mut workers: Vec<_> = (0..3).map(|worker| scan.worker(worker)).collect();
    workers.iter_mut().for_each(assert_waits);
    scan.cancel();
    for worker in &mut workers {
        let answer = in_time(worker.next()).await;
        assert!(matches!(answer, Some(Err(ScanError::Cancelled))), "{answer:?}");
    }
    gate.open();
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_may_be_taken_up_again_after_its_stream_was_dropped() {
    let (manager, table, gate) = gated(large()).await;
    let scan = start_scan(&manager, &table, 2, &[0]);
    let mut gone = scan.worker(0);
    assert_waits(&mut gone);
    drop(gone);
    let workers = [scan.worker(0), scan.worker(1)].map(ids).map(tokio::spawn);
    drop(scan);
    tokio::task::yield_now().await;
    gate.open();
    let all = in_time(join_all(workers)).await.into_iter();
    let all: Vec<i64> = all.flat_map(|worker| worker.unwrap().unwrap()).collect();
    assert!(are_rows(Ok(all), 0..ROWS));
    assert_free(&manager).await;
}

fn policies() -> impl Iterator<Item = Options> {
    PolicyKind::ALL.into_iter().map(|policy| large().policy(policy))
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_waited_for_goes_to_the_others_when_it_is_dropped() {
    for options in policies() {
        let policy = options.policy;
        let (manager, table, gate) = gated(options).await;
        let scan = start_scan(&manager, &table, 2, &[0]);
        let [mut gone, stays] = [0, 1].map(|worker| scan.worker(worker));
        assert_waits(&mut gone);
        drop(gone);
        gate.open();
        assert!(are_rows(in_time(ids(stays)).await, 0..ROWS), "{policy}");
        let chunks = scan.metrics().chunks;
        assert_eq!(chunks.chunks_delivered, chunks.chunks_needed, "{policy}");
        drop(scan);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_a_dropped_worker_never_took_goes_to_the_others() {
    for options in policies() {
        let policy = options.policy;
        let (manager, table, gate) = gated(options).await;
        let scan = start_scan(&manager, &table, 2, &[0]);
        let [mut gone, stays] = [0, 1].map(|worker| scan.worker(worker));
        assert_waits(&mut gone);
        gate.open();
        until(|| manager.report().chunks_in_use > 0).await;
        drop(gone);
        assert_eq!(manager.report().chunks_in_use, 0, "{policy}");
        assert!(are_rows(in_time(ids(stays)).await, 0..ROWS), "{policy}");
        drop(scan);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_dropped_within_a_chunk_takes_only_that_chunk_along() {
    for options in policies() {
        let policy = options.policy;
        let (manager, table, gate) = gated(options).await;
        gate.open();
        let scan = start_scan(&manager, &table, 2, &[0]);
        let [mut gone, stays] = [0, 1].map(|worker| scan.worker(worker));
        let batch = in_time(gone.next()).await.unwrap().unwrap();
        let chunk = crate::common::int64s(&batch, 0)[0] as u64 / CHUNK_ROWS;
        drop((gone, batch));
        let found = crate::common::sorted(in_time(ids(stays)).await.unwrap());
        let rows = (0..ROWS).filter(|row| row / CHUNK_ROWS != chunk).map(|row| row as i64);
        assert!(found.into_iter().eq(rows), "{policy}");
        drop(scan);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_worker_holds_up_no_other() {
    let (manager, table, gate) = gated(Options { active_workers_max: 1, ..large() }).await;
    gate.open();
    let mut other = scan(&manager, &table, &[0]);
    let for_two = start_scan(&manager, &table, 2, &[0]);
    let mut gone = for_two.worker(0);
    in_time(gone.next()).await.unwrap().unwrap();
    let time_to_first = async |stream: &mut ScanStream| {
        let asked = tokio::time::Instant::now();
        in_time(stream.next()).await.unwrap().unwrap();
        asked.elapsed()
    };
    assert!(
        tokio::time::timeout(Duration::from_millis(10), other.next()).await.is_err(),
        "one at a time"
    );
    drop(gone);
    assert_eq!(time_to_first(&mut other).await, Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_come_and_go_and_no_row_that_was_not_given_is_lost() {
    for options in policies() {
        let policy = options.policy;
        let (manager, table, gate) = gated(options).await;
        gate.open();
        let scan = start_scan(&manager, &table, 4, &[0]);
        let workers = (0..4).map(|worker| {
            let scan = Arc::clone(&scan);
            tokio::spawn(async move {
                let mut chunks = Vec::new();
                // The stream is polled some times, dropped and replaced. Only a chunk that has
                // given rows is lost.
                for polls in 0.. {
                    let mut stream = scan.worker(worker);
                    for _ in 0..polls % 3 {
                        match stream.next().now_or_never() {
                            Some(None) => return chunks,
                            Some(Some(batch)) => {
                                chunks.push(crate::common::int64s(&batch.unwrap(), 0)[0] / 1000);
                            }
                            None => tokio::task::yield_now().await,
                        }
                    }
                    drop(stream);
                    tokio::task::yield_now().await;
                }
                unreachable!()
            })
        });
        let mut chunks: Vec<_> = in_time(join_all(workers.collect::<Vec<_>>()))
            .await
            .into_iter()
            .flat_map(|worker| worker.unwrap())
            .collect();
        chunks.sort_unstable();
        chunks.dedup();
        assert!(chunks.into_iter().eq(0..12), "{policy}");
        drop(scan);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pruning_a_scan_drops_what_was_decoded_for_it() {
    let (manager, table, gate) = gated(large()).await;
    gate.open();
    let waiting = start_scan(&manager, &table, 1, &[0]);
    assert!(are_rows(in_time(ids(scan(&manager, &table, &[0]))).await, 0..ROWS));
    assert!(manager.report().decoded_bytes > 0, "it is kept for the other scan");
    waiting.prune(&waiting.remaining());
    assert_eq!(manager.report().decoded_bytes, 0);
    assert!(are_rows(in_time(ids(waiting.worker(0))).await, 0..0));
    drop(waiting);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_table_go_with_it() {
    let (manager, table, gate) = gated(large()).await;
    gate.open();
    let mut stream = scan(&manager, &table, &[0, 1]);
    in_time(stream.next()).await.unwrap().unwrap();
    drop(table);
    assert!(manager.report().pool_held_bytes > 0, "the scan keeps the table");
    while let Some(batch) = in_time(stream.next()).await {
        batch.unwrap();
    }
    drop(stream);
    assert_idle(&manager).await;
    assert_eq!(manager.report().pool_held_bytes, 0, "without being asked to evict");
}

#[tokio::test(start_paused = true)]
async fn a_table_dropped_while_it_is_read_goes_when_its_loads_have_ended() {
    let (manager, table, gate) = gated(large()).await;
    let mut stream = scan(&manager, &table, &[0, 1]);
    assert_waits(&mut stream);
    let parquet = Arc::downgrade(table.table());
    drop((stream, table));
    assert!(manager.report().loads_in_flight > 0);
    gate.open();
    assert_idle(&manager).await;
    assert_eq!(manager.report().pool_held_bytes, 0);
    assert!(parquet.upgrade().is_none(), "nothing of it is left");
}

fn new_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

#[test]
fn scans_learn_that_the_runtime_of_the_manager_is_gone() {
    let runtime = new_runtime();
    let (manager, table, gate) = runtime.block_on(gated(large()));
    let mut waiting = scan(&manager, &table, &[0]);
    runtime.block_on(async { assert_waits(&mut waiting) });
    let late = scan(&manager, &table, &[1]);
    drop(runtime);
    gate.open();
    new_runtime().block_on(async {
        for stream in [waiting, late] {
            let error = in_time(ids(stream)).await.map(|ids| ids.len()).unwrap_err();
            assert!(
                error.to_string().contains("make the manager on a runtime that outlives"),
                "{error}"
            );
        }
        assert_free(&manager).await;
    });
}

#[test]
fn however_many_scans_wait_when_the_runtime_of_the_manager_goes_all_are_told() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (manager, table, _closed) = runtime.block_on(gated(large()));
    let mut waiting: Vec<_> = (0..2_000).map(|_| scan(&manager, &table, &[0])).collect();
    runtime.block_on(async { waiting.iter_mut().for_each(assert_waits) });
    // One failure leads to the next read, and that to the next failure.
    drop(runtime);
    for stream in &mut waiting {
        let answer = stream.next().now_or_never().expect("nobody waits for ever");
        assert!(matches!(answer, Some(Err(ScanError::ShutDown))), "{answer:?}");
    }
}

#[test]
fn scans_that_wait_for_memory_learn_that_the_runtime_of_the_manager_is_gone() {
    let runtime = new_runtime();
    let (manager, table, gate) = runtime.block_on(gated(large()));
    gate.open();
    let operators = manager.operator_memory();
    let rest = beside_pool_bytes(&manager);
    assert!(operators.try_take(rest - 1));
    let mut waiting = scan(&manager, &table, &[0, 1]);
    let waited = runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(1), waiting.next()).await });
    assert!(waited.is_err(), "there is no memory");
    drop(runtime);
    let answer = new_runtime().block_on(waiting.next());
    assert!(matches!(answer, Some(Err(ScanError::ShutDown))), "{answer:?}");
    operators.give(rest - 1);
}
