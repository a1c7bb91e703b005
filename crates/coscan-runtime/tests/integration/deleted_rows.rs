//! Scans of snapshots without some rows: each row that is left once, and files shared with snapshots that have all rows.

use std::ops::Range;
use std::sync::Arc;

use coscan_runtime::core::{Order, PolicyKind, SplitMix64};
use coscan_runtime::storage::table::{DeletedRows, ParquetTable};
use coscan_runtime::{BufferManager, Options, ScanRequest, SharedTable};
use futures::future::join_all;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, assert_free, ids, in_time, manager, manager_with, sorted,
};

const CHUNKS: u64 = 8;
const ROWS: u64 = CHUNKS * CHUNK_ROWS;

/// A snapshot of a file without these rows.
fn without(table: &ParquetTable, deleted: &[u64]) -> Arc<ParquetTable> {
    let snapshot = ParquetTable::of_files(table.parquet_files().to_vec()).unwrap();
    let deleted: DeletedRows = deleted.iter().copied().collect();
    Arc::new(snapshot.without_rows(vec![Some(Arc::new(deleted))]).unwrap())
}

/// Some rows: single ones, and whole chunks.
fn random_rows(random: &mut SplitMix64) -> Vec<u64> {
    let single = random.below(200);
    let mut rows: Vec<u64> = (0..single).map(|_| random.below(ROWS)).collect();
    for _ in 0..random.below(3) {
        let chunk = random.below(CHUNKS);
        rows.extend(chunk * CHUNK_ROWS..(chunk + 1) * CHUNK_ROWS);
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Ranges of rows, ascending.
fn random_ranges(random: &mut SplitMix64) -> Vec<Range<u64>> {
    let mut bounds: Vec<u64> = (0..2 * (1 + random.below(3))).map(|_| random.below(ROWS)).collect();
    bounds.sort_unstable();
    bounds.chunks(2).map(|bounds| bounds[0]..bounds[1]).collect()
}

async fn check(manager: &BufferManager, table: SharedTable, deleted: Vec<u64>, seed: u64) {
    let mut random = SplitMix64(seed);
    let rows = if random.below(2) == 0 {
        std::iter::once(0..ROWS).collect()
    } else {
        random_ranges(&mut random)
    };
    let workers = 1 + usize::try_from(random.below(3)).unwrap();
    let order = if random.below(2) == 0 { Order::Any } else { Order::InOrder };
    let columns = [vec![0], vec![0, 2], vec![0, 1, 2]][random.below(3) as usize].clone();
    let expected: Vec<i64> = rows
        .iter()
        .cloned()
        .flatten()
        .filter(|row| deleted.binary_search(row).is_err())
        .map(|row| row.cast_signed())
        .collect();
    let request = ScanRequest { rows, order, workers, ..ScanRequest::of_columns(&table, columns) };
    let scan = manager.start_scan(&table, request).unwrap();
    let streams = (0..workers).map(|worker| tokio::spawn(ids(scan.worker(worker))));
    let read = in_time(join_all(streams)).await;
    let read: Vec<i64> = read.into_iter().flat_map(|rows| rows.unwrap().unwrap()).collect();
    match (order, workers) {
        (Order::InOrder, 1) => assert_eq!(read, expected, "seed {seed}"),
        _ => assert_eq!(sorted(read), expected, "seed {seed}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_that_is_left_comes_once() {
    for seed in 0..60 {
        let mut random = SplitMix64(seed);
        let kind = PolicyKind::ALL[seed as usize % PolicyKind::ALL.len()];
        // A chunk gives several batches.
        let batch_rows = 100 + random.below(400) as usize;
        let options = Options { batch_rows, ..Options::with_memory_bytes(LARGE).policy(kind) };
        let manager = manager_with(options);
        let table = Fixture::new(ROWS).await.table().await;
        let versions = (0..3).map(|version| {
            let deleted = if version == 0 { Vec::new() } else { random_rows(&mut random) };
            (manager.register(without(&table, &deleted)), deleted)
        });
        let versions: Vec<_> = versions.collect();
        let scans = (0..6).map(|scan| {
            let (table, deleted) = versions[scan % versions.len()].clone();
            check(&manager, table, deleted, seed * 1000 + scan as u64)
        });
        join_all(scans).await;
        drop(versions);
        assert_free(&manager).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_share_the_pages_of_their_files() {
    let manager = manager(PolicyKind::Relevance, LARGE);
    let fixture = Fixture::new(ROWS).await;
    let table = fixture.table().await;
    let all = manager.register(Arc::clone(&table));
    let some = manager.register(without(&table, &[0, 1, 4000, ROWS - 1]));
    for (table, rows, reads) in [(all, ROWS, true), (some, ROWS - 4, false)] {
        fixture.metrics.reset();
        let scan = manager.start_scan(&table, ScanRequest::of_columns(&table, vec![0])).unwrap();
        assert_eq!(in_time(ids(scan.worker(0))).await.unwrap().len() as u64, rows);
        assert_eq!(fixture.metrics.snapshot().bytes > 0, reads);
    }
}

#[tokio::test]
async fn a_snapshot_cannot_lack_rows_that_its_file_does_not_have() {
    let table = Fixture::new(ROWS).await.table().await;
    let snapshot = ParquetTable::of_files(table.parquet_files().to_vec()).unwrap();
    let deleted: DeletedRows = [3, ROWS].into_iter().collect();
    let refused = snapshot.without_rows(vec![Some(Arc::new(deleted))]).unwrap_err().to_string();
    assert!(refused.contains(&format!("row {ROWS} of")), "{refused}");
}
