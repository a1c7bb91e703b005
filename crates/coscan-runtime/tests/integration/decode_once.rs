//! Columns that several scans need are decoded once, and kept for the scans that need them most.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, are_rows, assert_free, column_range, file_bytes, ids, in_time,
    manager, manager_with,
};
use coscan_runtime::core::{Order, PolicyKind};
use coscan_runtime::{BufferManager, Options, ScanError, ScanMetrics, ScanRequest, SharedTable};
use futures::StreamExt;
use futures::future::join_all;
use parquet::basic::Compression;

const ROWS: u64 = 12 * CHUNK_ROWS;

/// Runs scans of these columns that are all registered before any page comes. Returns their metrics.
async fn start_together(manager: &BufferManager, columns: &[&[usize]]) -> Vec<ScanMetrics> {
    let (gate, table) = Fixture::new(ROWS).await.table_with_faults().await;
    let table = manager.register(table);
    gate.close();
    let scans = columns.iter().map(|columns| {
        manager.start_scan(&table, ScanRequest::of_columns(&table, columns.to_vec())).unwrap()
    });
    let scans: Vec<_> = scans.collect();
    let streams: Vec<_> = scans.iter().map(|scan| tokio::spawn(ids(scan.worker(0)))).collect();
    gate.open();
    for stream in in_time(join_all(streams)).await {
        assert!(are_rows(stream.unwrap(), 0..ROWS));
    }
    scans.iter().map(|scan| scan.metrics()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_of_the_same_columns_decode_each_slice_once() {
    for policy in PolicyKind::ALL {
        let manager = manager(policy, LARGE);
        let metrics = start_together(&manager, &[&[0, 2][..]; 6]).await;
        let decoded: u64 = metrics.iter().map(|metrics| metrics.slices_decoded).sum();
        let reused: u64 = metrics.iter().map(|metrics| metrics.slices_reused).sum();
        assert_eq!((decoded, reused), (12 * 2, 5 * 12 * 2), "{policy}");
        assert_free(&manager).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_share_the_columns_that_they_have_in_common() {
    let manager = manager(PolicyKind::Relevance, LARGE);
    let metrics = start_together(&manager, &[&[0, 1], &[0, 2], &[0]]).await;
    let decoded: u64 = metrics.iter().map(|metrics| metrics.slices_decoded).sum();
    let reused: u64 = metrics.iter().map(|metrics| metrics.slices_reused).sum();
    assert_eq!((decoded, reused), (3 * 12, 2 * 12));
    assert_free(&manager).await;
}

/// A scan of some chunks, in order.
fn chunks_in_order(
    manager: &BufferManager,
    table: &SharedTable,
    chunks: std::ops::Range<u64>,
) -> std::sync::Arc<coscan_runtime::Scan> {
    let rows = vec![chunks.start * CHUNK_ROWS..chunks.end * CHUNK_ROWS];
    let request =
        ScanRequest { rows, order: Order::InOrder, ..ScanRequest::of_columns(table, vec![0]) };
    manager.start_scan(table, request).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_last_to_take_a_slice_drops_it() {
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(Fixture::new(ROWS).await.table().await);
    let scans = [chunks_in_order(&manager, &table, 0..2), chunks_in_order(&manager, &table, 0..2)];
    let mut workers = scans.each_ref().map(|scan| scan.worker(0));
    for (worker, is_kept) in workers.iter_mut().zip([true, false]) {
        drop(in_time(worker.next()).await.unwrap().unwrap());
        assert_eq!(manager.report().decoded_bytes > 0, is_kept);
    }
    drop((scans, workers));
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn slices_that_fewest_scans_need_are_dropped_first() {
    // Room for two slices of a column of 8000 bytes.
    let options = Options { decode_bytes: 20_000, ..Options::with_pool_bytes(LARGE, LARGE) };
    let manager = manager_with(options);
    let table = manager.register(Fixture::new(ROWS).await.table().await);
    let scan = |chunks| chunks_in_order(&manager, &table, chunks);
    let (zero, one, other_one, two) = (scan(0..1), scan(1..2), scan(1..2), scan(2..3));
    // It decodes all three: for the last, one of the first two has to be dropped.
    assert_eq!(in_time(ids(scan(0..3).worker(0))).await.unwrap().len(), 3000);
    let mut found = Vec::new();
    for scan in [&one, &other_one, &two, &zero] {
        assert_eq!(in_time(ids(scan.worker(0))).await.unwrap().len(), 1000);
        let metrics = scan.metrics();
        found.push((metrics.slices_decoded, metrics.slices_reused));
    }
    assert_eq!(found, [(0, 1), (0, 1), (0, 1), (1, 0)]);
    drop((zero, one, other_one, two));
    assert_free(&manager).await;
}

/// A table in which the first column of a row group is damaged.
async fn damaged(manager: &BufferManager, row_group: usize) -> SharedTable {
    let mut bytes = file_bytes(ROWS, Compression::SNAPPY);
    let plain = Fixture::of_bytes(ROWS, bytes.clone()).await.table().await;
    let start = column_range(&plain, row_group, 0).start as usize;
    bytes[start + 10..start + 60].iter_mut().for_each(|byte| *byte ^= 0xff);
    manager.register(Fixture::of_bytes(ROWS, bytes).await.table().await)
}

#[tokio::test(start_paused = true)]
async fn a_column_that_cannot_be_decoded_fails_all_scans_that_need_it() {
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = damaged(&manager, 7).await;
    let columns = [&[0][..], &[0, 2], &[1], &[0], &[1, 2]];
    let streams = columns.map(|columns| ids(manager.scan(&table, columns, &[0..ROWS]).unwrap()));
    for (columns, result) in columns.iter().zip(in_time(join_all(streams)).await) {
        match result {
            Ok(values) => assert!(columns[0] == 1 && values.len() as u64 == ROWS),
            Err(error) => assert!(columns[0] == 0 && matches!(error, ScanError::Decode(_))),
        }
    }
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn workers_do_not_end_well_when_one_of_them_lost_rows() {
    let manager = manager(PolicyKind::Normal, LARGE);
    let table = damaged(&manager, 0).await;
    let request = ScanRequest { workers: 3, ..ScanRequest::of_columns(&table, vec![0]) };
    let scan = manager.start_scan(&table, request).unwrap();
    let mut workers: Vec<_> = (0..3).map(|worker| scan.worker(worker)).collect();
    // The first is handed the damaged chunk.
    assert!(in_time(workers[0].next()).await.unwrap().is_err());
    for worker in &mut workers[1..] {
        let answer = in_time(worker.next()).await.unwrap();
        assert!(matches!(answer, Err(ScanError::Decode(_))), "{answer:?}");
        assert!(in_time(worker.next()).await.is_none());
    }
    drop((scan, workers));
    assert_free(&manager).await;
}
