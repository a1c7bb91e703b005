//! Decoded columns that no scan needs stay for later scans while memory is free.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, are_rows, assert_free, assert_idle, ids, in_time, manager_with,
    until,
};
use coscan_runtime::core::SplitMix64;
use coscan_runtime::{BufferManager, ManagerReport, Options, ScanRequest, SharedTable};
use futures::StreamExt;

const CHUNKS: u64 = 12;
const ROWS: u64 = CHUNKS * CHUNK_ROWS;

/// About the bytes of a column of numbers of a chunk, decoded.
const COLUMN_BYTES: u64 = 8 * CHUNK_ROWS;

fn options(decode_bytes: u64) -> Options {
    Options { batch_rows: 100, ..Options::with_pool_bytes(LARGE, decode_bytes) }
}

async fn table(manager: &BufferManager) -> SharedTable {
    manager.register(Fixture::new(ROWS).await.table().await)
}

/// Reads a column. Returns how many of its slices were decoded, and how many were there.
async fn read(manager: &BufferManager, table: &SharedTable) -> (u64, u64) {
    let scan = manager.start_scan(table, ScanRequest::of_columns(table, vec![0])).unwrap();
    assert!(are_rows(in_time(ids(scan.worker(0))).await, 0..ROWS));
    let metrics = scan.metrics();
    (metrics.slices_decoded, metrics.slices_reused)
}

#[tokio::test(start_paused = true)]
async fn what_is_read_again_stays_decoded_until_its_table_is_released() {
    let manager = manager_with(options(LARGE));
    let table = table(&manager).await;
    assert_eq!(read(&manager, &table).await, (CHUNKS, 0));
    assert_eq!(manager.report().decoded_bytes, 0, "it was read once");
    assert_eq!(read(&manager, &table).await, (CHUNKS, 0));
    assert!(manager.report().decoded_idle_bytes >= CHUNKS * COLUMN_BYTES);
    assert_eq!(read(&manager, &table).await, (0, CHUNKS));
    assert_eq!(read(&manager, &table).await, (0, CHUNKS));
    assert_idle(&manager).await;
    drop(table);
    until(|| manager.report().decoded_bytes == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_table_that_is_too_large_stays() {
    let decode_bytes = 8 * COLUMN_BYTES;
    let manager = manager_with(options(decode_bytes));
    let table = table(&manager).await;
    for round in 0..10 {
        let (decoded, reused) = read(&manager, &table).await;
        assert_eq!(decoded + reused, CHUNKS);
        assert!(round < 2 || reused >= 4, "{reused} in round {round}");
        assert!(manager.report().decoded_idle_bytes <= decode_bytes);
    }
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_read_gives_way() {
    let manager = manager_with(options(10 * COLUMN_BYTES));
    let (old, new) = (table(&manager).await, table(&manager).await);
    for _ in 0..3 {
        read(&manager, &old).await;
    }
    let reused = async |table| read(&manager, table).await.1;
    assert!(reused(&old).await >= 6);
    for _ in 0..8 {
        read(&manager, &new).await;
    }
    assert!(reused(&new).await >= 5);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn operators_take_its_memory_before_that_of_the_pool() {
    let manager = manager_with(options(LARGE));
    let table = table(&manager).await;
    for _ in 0..3 {
        read(&manager, &table).await;
    }
    let report = manager.report();
    assert!(report.decoded_idle_bytes > 0 && report.pool_held_bytes > 0);
    let operators = manager.operator_memory();
    let most_bytes = report.memory_bytes - report.pool_limit_bytes - report.metadata_bytes;
    assert!(operators.try_take(most_bytes));
    let with_operators = manager.report();
    assert_eq!(with_operators.decoded_bytes, 0);
    assert_eq!(with_operators.pool_held_bytes, report.pool_held_bytes);
    // Nothing is kept now.
    for _ in 0..3 {
        assert_eq!(read(&manager, &table).await.1, 0);
    }
    operators.give(most_bytes);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_stops_early_keeps_nothing() {
    let manager = manager_with(options(LARGE));
    let table = table(&manager).await;
    for _ in 0..4 {
        let scan = manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).unwrap();
        assert_eq!(in_time(scan.worker(0).next()).await.unwrap().unwrap().num_rows(), 100);
    }
    assert_eq!(manager.report().decoded_bytes, 0);
    read(&manager, &table).await;
    // Used before now. Half of a chunk is collected, and dropped.
    let scan = manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).unwrap();
    let mut worker = scan.worker(0);
    for _ in 0..5 {
        in_time(worker.next()).await.unwrap().unwrap();
    }
    let collecting_bytes = manager.report().decoded_bytes;
    let operators = manager.operator_memory();
    let most_bytes = manager.report().memory_bytes - manager.report().pool_limit_bytes;
    operators.take(most_bytes);
    let left_bytes = manager.report().decoded_bytes;
    assert!(left_bytes + COLUMN_BYTES / 2 <= collecting_bytes, "{left_bytes}, {collecting_bytes}");
    operators.give(most_bytes);
    drop((worker, scan));
    assert_eq!(manager.report().decoded_bytes, 0);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_idle_for_long_is_dropped() {
    let timeout = Duration::from_secs(60);
    let manager = manager_with(Options { idle_timeout: timeout, ..options(LARGE) });
    let table = table(&manager).await;
    for _ in 0..3 {
        read(&manager, &table).await;
    }
    tokio::time::sleep(timeout).await;
    read(&manager, &table).await;
    tokio::time::sleep(timeout).await;
    assert!(manager.report().decoded_idle_bytes > 0, "used in the meantime");
    tokio::time::sleep(timeout + Duration::from_millis(1)).await;
    assert_eq!(manager.report().decoded_bytes, 0);
    assert_free(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_at_once_get_their_rows_whatever_stays() {
    for decode_bytes in [2 * COLUMN_BYTES, 7 * COLUMN_BYTES, LARGE] {
        let manager = manager_with(options(decode_bytes));
        let table = table(&manager).await;
        let stream = |seed| {
            let (manager, table) = (manager.clone(), table.clone());
            tokio::spawn(async move {
                let mut random = SplitMix64(seed);
                for _ in 0..20 {
                    let first = random.below(CHUNKS);
                    let last = first + 1 + random.below(CHUNKS - first);
                    let rows = first * CHUNK_ROWS..last * CHUNK_ROWS;
                    let columns = [&[0][..], &[0, 1], &[0, 1, 2]][random.below(3) as usize];
                    let mut scan =
                        manager.scan(&table, columns, std::slice::from_ref(&rows)).unwrap();
                    if random.below(4) == 0 {
                        drop(in_time(scan.next()).await);
                    } else {
                        assert!(are_rows(in_time(ids(scan)).await, rows));
                    }
                }
            })
        };
        let streams: Vec<_> = (0..6).map(stream).collect();
        for stream in streams {
            stream.await.unwrap();
        }
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_table_of_the_same_file_leaves_nothing() {
    let manager = manager_with(options(LARGE));
    let parquet = Fixture::new(ROWS).await.table().await;
    let one = manager.register_snapshot("one", Arc::clone(&parquet));
    for _ in 0..3 {
        read(&manager, &one).await;
    }
    let two = manager.register_snapshot("two", parquet);
    let scan = || manager.start_scan(&two, ScanRequest::of_columns(&two, vec![0])).unwrap();
    let (reads, waits) = (scan(), scan());
    assert!(are_rows(in_time(ids(reads.worker(0))).await, 0..ROWS));
    drop((reads, waits));
    let is_idle = |report: ManagerReport| report.decoded_bytes == report.decoded_idle_bytes;
    until(|| is_idle(manager.report())).await;
    drop((one, two));
    until(|| manager.report().decoded_bytes == 0).await;
}

#[tokio::test(start_paused = true)]
async fn scans_and_their_table_that_are_dropped_at_once_leave_nothing() {
    for rounds in 0..4 {
        let manager = manager_with(options(LARGE));
        let table = table(&manager).await;
        for _ in 0..rounds {
            read(&manager, &table).await;
        }
        let scan = || manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).unwrap();
        let (reads, waits) = (scan(), scan());
        assert!(are_rows(in_time(ids(reads.worker(0))).await, 0..ROWS));
        drop((reads, waits, table));
        until(|| manager.report().decoded_bytes == 0).await;
    }
}

/// Reads columns of some rows.
async fn read_columns(manager: &BufferManager, table: &SharedTable, columns: &[usize], rows: u64) {
    let batches = manager.scan(table, columns, &[0..rows]).unwrap();
    in_time(batches.for_each(async |batch| drop(batch.unwrap()))).await;
}

#[tokio::test(start_paused = true)]
async fn operators_get_what_is_collected_also_if_a_column_is_idle() {
    for is_one_idle in [false, true] {
        let manager = manager_with(options(LARGE));
        let table = table(&manager).await;
        for _ in 0..2 {
            read_columns(&manager, &table, &[0], ROWS).await;
            read_columns(&manager, &table, &[1], ROWS).await;
        }
        manager.evict_unneeded();
        let mut paused = manager.scan(&table, &[0], &[0..ROWS]).unwrap();
        for _ in 0..8 {
            in_time(paused.next()).await.unwrap().unwrap();
        }
        if is_one_idle {
            read_columns(&manager, &table, &[1], CHUNK_ROWS).await;
            assert!(manager.report().decoded_idle_bytes > 0);
        }
        let report = manager.report();
        let decoded_bytes = report.decoded_bytes - report.decoded_idle_bytes - COLUMN_BYTES / 2;
        let least_bytes = LARGE / 8 + report.metadata_bytes + decoded_bytes;
        let most_bytes = report.memory_bytes - least_bytes;
        assert!(manager.operator_memory().try_take(most_bytes), "{is_one_idle}");
        manager.operator_memory().give(most_bytes);
        drop(paused);
        assert_free(&manager).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slices_that_are_needed_no_more_at_once_displace_only_what_is_missing() {
    let manager = manager_with(options(20 * COLUMN_BYTES));
    let (old, new) = (table(&manager).await, table(&manager).await);
    for _ in 0..3 {
        read(&manager, &old).await;
    }
    for _ in 0..2 {
        read_columns(&manager, &new, &[0, 1], ROWS).await;
    }
    let scan = || manager.start_scan(&new, ScanRequest::of_columns(&new, vec![0, 1])).unwrap();
    for _ in 0..3 {
        let (reads, waits) = (scan(), scan());
        assert!(are_rows(in_time(ids(reads.worker(0))).await, 0..ROWS));
        drop((reads, waits));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(manager.report().decoded_idle_bytes > 10 * COLUMN_BYTES);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_drops_nothing() {
    let manager = manager_with(options(LARGE));
    let table = table(&manager).await;
    for _ in 0..3 {
        read(&manager, &table).await;
    }
    assert!(!manager.operator_memory().try_take(4 * LARGE));
    assert!(manager.report().decoded_idle_bytes >= CHUNKS * COLUMN_BYTES);
    assert_free(&manager).await;
}
