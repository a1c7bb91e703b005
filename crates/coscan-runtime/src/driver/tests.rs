#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use coscan_core::WorkerIndex;
use coscan_storage::table::ParquetTable;
use coscan_testing::{parquet_file, table_in_memory};
use futures::{FutureExt, StreamExt};
use parquet::file::properties::WriterProperties;
use tokio::runtime::Handle;

use super::handle::Driver;
use super::message::Message;
use crate::{BufferManager, Options, Scan, ScanError, ScanRequest};

const ROWS: usize = 1000;

/// A table of one chunk.
async fn table() -> Arc<ParquetTable> {
    table_of_chunks(ROWS as u64).await
}

pub(super) async fn table_of_chunks(chunk_rows: u64) -> Arc<ParquetTable> {
    let ids = Int64Array::from_iter_values(0..ROWS as i64);
    let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap();
    // Pages have few rows, so that the file can be split into that many chunks.
    let pages =
        WriterProperties::builder().set_data_page_row_count_limit(10).set_write_batch_size(10);
    table_in_memory(parquet_file(&[batch], pages.build()), chunk_rows).await
}

/// Panics as if core had found a broken invariant.
fn panic_inside(driver: &Arc<Driver>) {
    let panicked = catch_unwind(AssertUnwindSafe(|| driver.call(|_, _| panic!("on purpose"))));
    panicked.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_panic_inside_fails_all_scans_and_leaves_no_worker_waiting() {
    let manager =
        BufferManager::on_runtime(Options::with_memory_bytes(1 << 20), &Handle::current()).unwrap();
    let table = manager.register(table().await);
    let driver = manager.operator_memory().driver;
    let mut working = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap();
    working.next().await.unwrap().unwrap();
    // No load ends before the panic, since no other task runs.
    manager.evict_unneeded();
    let mut waiting = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap();
    assert!(waiting.next().now_or_never().is_none());
    let idle = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap();

    panic_inside(&driver);
    for mut stream in [working, waiting, idle] {
        let answer = stream.next().await;
        assert!(matches!(answer, Some(Err(ScanError::Broken))), "{answer:?}");
        assert!(stream.next().await.is_none());
    }
    let refused = manager.scan(&table, &[0], &[0..ROWS as u64]).unwrap_err();
    assert!(refused.to_string().contains("make a new one"), "{refused}");
    // This simulates a panic while a table was being registered.
    assert!(driver.registering(|_, _| ()).is_none());
    let late = manager.register(Arc::clone(table.table()));
    assert!(matches!(manager.scan(&late, &[0], &[]), Err(ScanError::Broken)));
    drop(late);
    // Late returns and reports find nothing to break.
    drop(table);
    tokio::task::yield_now().await;
    let report = manager.report();
    assert_eq!((report.scans, report.decoded_bytes, report.pool_held_bytes), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_at_work_until_it_asks_again_or_pauses_or_stops_or_its_scan_ends() {
    let manager =
        BufferManager::on_runtime(Options::with_memory_bytes(1 << 20), &Handle::current()).unwrap();
    let table = manager.register(table().await);
    let driver = manager.operator_memory().driver;
    let at_work = || {
        driver.call(|state, _| (state.workers.at_work.len(), state.core.state().active_workers()))
    };
    let request = || ScanRequest { workers: 2, ..ScanRequest::of_columns(&table, vec![0]) };

    let asks_again = manager.start_scan(&table, request()).unwrap();
    let mut worker = asks_again.worker(0);
    worker.next().await.unwrap().unwrap();
    assert_eq!(at_work(), (1, 1));
    assert!(worker.next().await.is_none());
    assert_eq!(at_work(), (0, 0), "it was told that there is no more");

    let pauses = manager.start_scan(&table, request()).unwrap();
    let mut worker = pauses.worker(0);
    worker.next().await.unwrap().unwrap();
    driver.call(|state, now| state.report_pauses(now));
    assert_eq!(at_work(), (1, 1), "it was polled just now");
    tokio::time::advance(Duration::from_secs(1)).await;
    driver.call(|state, now| state.report_pauses(now));
    assert_eq!(at_work(), (0, 0));

    let stops = manager.start_scan(&table, request()).unwrap();
    let mut worker = stops.worker(0);
    worker.next().await.unwrap().unwrap();
    assert_eq!(at_work(), (1, 1));
    drop(worker);
    assert_eq!(at_work(), (0, 0));

    let ends = manager.start_scan(&table, request()).unwrap();
    let mut worker = ends.worker(0);
    worker.next().await.unwrap().unwrap();
    assert_eq!(at_work(), (1, 1));
    ends.cancel();
    assert_eq!(at_work(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_chunk_returned_to_a_scan_that_has_failed_takes_only_itself_along() {
    let manager =
        BufferManager::on_runtime(Options::with_memory_bytes(1 << 20), &Handle::current()).unwrap();
    let table = manager.register(table_of_chunks(1).await);
    let driver = manager.operator_memory().driver;
    let request = ScanRequest { workers: 2, ..ScanRequest::of_columns(&table, vec![0]) };
    let scan = manager.start_scan(&table, request).unwrap();
    let worker = WorkerIndex(0);
    let request = driver.request_chunk(scan.handle().id(), worker);
    let lease = request.await.unwrap().unwrap();
    let chunk = lease.chunk();

    driver.call(|state, _| state.fail(scan.handle().id(), &ScanError::Cancelled));
    drop(lease);
    assert_eq!(scan.remaining().len(), ROWS - 1, "all others");
    driver.settled();
    assert!(scan.remaining().is_empty());
    scan.extend(&[chunk]).unwrap();
    assert!(scan.remaining().is_empty(), "it takes no more");
}

/// A manager, and a scan of a table of two chunks for two workers.
async fn two_chunks() -> (BufferManager, Arc<Scan>) {
    let manager =
        BufferManager::on_runtime(Options::with_memory_bytes(1 << 20), &Handle::current()).unwrap();
    let table = manager.register(table_of_chunks(ROWS as u64 / 2).await);
    let request = ScanRequest { workers: 2, ..ScanRequest::of_columns(&table, vec![0]) };
    let scan = manager.start_scan(&table, request).unwrap();
    (manager, scan)
}

#[tokio::test(start_paused = true)]
async fn a_release_that_comes_late_unpins_no_other_chunk() {
    let (manager, scan) = two_chunks().await;
    let driver = manager.operator_memory().driver;
    let (id, worker) = (scan.handle().id(), WorkerIndex(0));
    let first = driver.request_chunk(id, worker);
    let first_id = first.id();
    drop(first.await.unwrap().unwrap());
    let second = driver.request_chunk(id, worker).await.unwrap().unwrap();
    // This simulates messages that were posted late.
    driver.post(Message::ChunkOpened(first_id));
    driver.post(Message::ChunkReturned { request: first_id, untaken: Vec::new() });
    assert_eq!(manager.report().chunks_in_use, 1);
    drop(second);
    assert_eq!(manager.report().chunks_in_use, 0);
    assert_eq!(scan.remaining().len(), 2, "both have returned");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_left_late_does_not_silence_its_successor() {
    let (manager, scan) = two_chunks().await;
    let driver = manager.operator_memory().driver;
    let (id, worker) = (scan.handle().id(), WorkerIndex(0));
    let mut gone = driver.request_chunk(id, worker);
    assert!((&mut gone).now_or_never().is_none(), "nothing is read yet");
    let mut successor = driver.request_chunk(id, worker);
    assert!((&mut successor).now_or_never().is_none());
    driver.post(Message::WorkerGone(gone.id()));
    assert!(successor.await.unwrap().is_some());
    assert!(matches!(gone.await, Err(ScanError::Cancelled)), "it was replaced");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_nobody_polls_holds_no_memory() {
    let (manager, scan) = two_chunks().await;
    let mut unpolled = scan.worker(0);
    assert!(unpolled.next().now_or_never().is_none());
    while manager.report().chunks_in_use == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(manager.report().decoded_bytes, 0);
    drop(unpolled);
    assert_eq!(scan.remaining().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_request_is_replaced_is_told() {
    let (manager, scan) = two_chunks().await;
    let driver = manager.operator_memory().driver;
    let (id, worker) = (scan.handle().id(), WorkerIndex(0));
    let mut replaced = driver.request_chunk(id, worker);
    assert!((&mut replaced).now_or_never().is_none());
    let replaced = tokio::spawn(replaced);
    tokio::task::yield_now().await;
    let successor = driver.request_chunk(id, worker);
    assert!(successor.await.unwrap().is_some());
    let told = tokio::time::timeout(Duration::from_secs(1), replaced).await.unwrap().unwrap();
    assert!(matches!(told, Ok(Some(_)) | Err(ScanError::Cancelled)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_fails_while_core_is_about_to_answer_it_harms_no_other() {
    let options = Options { active_workers_max: 1, ..Options::with_memory_bytes(1 << 20) };
    let manager = BufferManager::on_runtime(options, &Handle::current()).unwrap();
    let table = manager.register(table_of_chunks(10).await);
    let driver = manager.operator_memory().driver;
    let start = || {
        let request = ScanRequest { workers: 2, ..ScanRequest::of_columns(&table, vec![0]) };
        manager.start_scan(&table, request).unwrap()
    };
    let (working, fails) = (start(), start());
    let mut worker = working.worker(0);
    worker.next().await.unwrap().unwrap();
    let mut held_back = [0, 1].map(|worker| fails.worker(worker));
    for worker in &mut held_back {
        // Its chunks are there, but other workers are at work.
        while worker.next().now_or_never().is_some() {}
    }
    driver.call(|state, now| {
        state.fail(fails.handle().id(), &ScanError::Cancelled);
        for worker in [0, 1].map(WorkerIndex) {
            state.withdraw(now, working.handle().id(), worker);
        }
    });
    for mut worker in held_back {
        assert!(matches!(worker.next().await, Some(Err(ScanError::Cancelled))));
    }
    assert!(manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).is_ok());
}

#[tokio::test(start_paused = true)]
async fn memory_that_comes_and_goes_with_each_batch_does_not_wake_the_pump() {
    let options = Options::with_memory_bytes(16 << 20);
    let manager = BufferManager::on_runtime(options, &Handle::current()).unwrap();
    let operators = manager.operator_memory();
    let driver = &operators.driver;
    driver.settled();
    let has_rung = || driver.bell().listen(None).now_or_never().is_some();
    let _ = has_rung();
    for _ in 0..1_000 {
        assert!(operators.try_take(9 << 20));
        operators.give(9 << 20);
    }
    assert!(!has_rung());
    assert_eq!(manager.report().pool_limit_bytes, 8 << 20, "it has what is free again");
}
