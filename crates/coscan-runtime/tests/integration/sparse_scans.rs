//! Sparse scans: only the pages of their rows are read, ahead of queued loads, and no scan gets wrong rows.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, are_rows, assert_free, ids, in_time, largest_chunk_bytes,
    manager_with, sorted,
};
use coscan_runtime::core::{Order, PolicyKind};
use coscan_runtime::storage::stores::{LimitedStore, Limits};
use coscan_runtime::{BufferManager, Options, ScanError, ScanRequest};
use futures::future::join_all;

/// Row groups of a chunk.
const GROUPS: u64 = 10;
const ROWS: u64 = 4 * GROUPS * CHUNK_ROWS + 500;

fn manager(policy: PolicyKind, pool_bytes: u64) -> BufferManager {
    let options = Options::with_pool_bytes(pool_bytes, 4 << 20).policy(policy);
    manager_with(Options { request_cost_bytes: 0, ..options })
}

#[tokio::test]
async fn few_rows_are_read_by_their_pages() {
    for policy in PolicyKind::ALL {
        let fixture = Fixture::new(ROWS).await;
        let manager = manager(policy, LARGE);
        let table = fixture.table_of_chunks(GROUPS * CHUNK_ROWS, |store| store).await;
        let table = manager.register(table);
        let (columns, row) = ([0, 1], 12_345);
        let found = ids(manager.scan(&table, &columns, &[row..row + 1]).unwrap()).await;
        assert_eq!(found.unwrap(), [row as i64], "{policy}");

        let (parquet, layout) = (table.table(), table.table().layout());
        let chunk = layout.chunks_in(row..row + 1).next().unwrap();
        let start = layout.rows(chunk).start;
        let wanted = [row - start..row + 1 - start];
        let pages = columns
            .map(|column| parquet.pages_of_rows(chunk, parquet.group_of_column(column), &wanted));
        assert!(pages.iter().all(|pages| pages.len() == 1), "one row group of ten");
        let bytes: u64 = pages.iter().flatten().map(|&page| layout.bytes_of(page)).sum();
        let read = fixture.metrics.snapshot();
        assert_eq!((read.requests, read.bytes), (1, bytes), "{policy}");
        assert_free(&manager).await;
    }
}

#[tokio::test]
async fn rows_that_do_not_ascend_or_overlap_are_refused() {
    let fixture = Fixture::new(2 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let backwards = std::ops::Range { start: 30, end: 20 };
    for rows in [[100..200, 0..50], [0..100, 99..200], [0..10, backwards]] {
        let refused = manager.scan(&table, &[0], &rows).unwrap_err();
        assert!(matches!(refused, ScanError::RowsOutOfOrder { .. }), "{refused:?}");
        assert!(refused.to_string().contains("from first to last"), "{refused}");
    }
    // Ranges may touch, be empty, or go beyond the table.
    let found = ids(manager.scan(&table, &[0], &[0..10, 10..20, 25..25, 1990..9999]).unwrap());
    let found = sorted(found.await.unwrap());
    assert!(found.into_iter().eq((0..20).chain(1990..2000)));
    assert_free(&manager).await;
}

#[tokio::test]
async fn many_rows_of_a_chunk_are_read_with_the_others() {
    let fixture = Fixture::new(ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = fixture.table_of_chunks(GROUPS * CHUNK_ROWS, |store| store).await;
    let table = manager.register(table);
    let rows = 10_000..15_000;
    let found = ids(manager.scan(&table, &[0], std::slice::from_ref(&rows)).unwrap()).await;
    assert!(are_rows(found, rows));
    let read = fixture.metrics.snapshot();
    let others = ids(manager.scan(&table, &[0], &[15_000..20_000]).unwrap()).await;
    assert!(are_rows(others, 15_000..20_000));
    assert_eq!(fixture.metrics.snapshot(), read, "the rest of the chunk was there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sparse_rows_are_right_beside_whole_scans() {
    for policy in PolicyKind::ALL {
        let fixture = Fixture::new(ROWS).await;
        let table = fixture.table_of_chunks(GROUPS * CHUNK_ROWS, |store| store).await;
        for pool_bytes in [largest_chunk_bytes(&table), LARGE] {
            let manager = manager(policy, pool_bytes);
            let table = manager.register(Arc::clone(&table));
            let whole = [&[0, 1, 2][..], &[0], &[0, 2]].map(|columns| {
                let scan = manager.scan(&table, columns, &[fixture.all_rows()]).unwrap();
                tokio::spawn(ids(scan))
            });
            let points = (0..60).map(|point| {
                let row = point * 7_919 % (ROWS - 20);
                // Rows of one page, of two pages and of two chunks.
                let far = (row + 10_000).min(ROWS - 5);
                let rows =
                    [vec![row..row + 1], vec![row..row + 20], vec![row..row + 1, far..far + 5]];
                let rows = rows[point as usize % 3].clone();
                let order = if point % 2 == 0 { Order::Any } else { Order::InOrder };
                let request = ScanRequest {
                    rows: rows.clone(),
                    order,
                    ..ScanRequest::of_columns(&table, vec![0, 2])
                };
                let scan = manager.start_scan(&table, request).unwrap();
                let found = tokio::spawn(ids(scan.worker(0)));
                async move { (rows, found.await.unwrap().unwrap()) }
            });
            for (rows, found) in join_all(points).await {
                let expected = rows.iter().cloned().flatten().map(|row| row as i64);
                assert!(sorted(found).into_iter().eq(expected), "{policy}, rows {rows:?}");
            }
            for scan in whole {
                assert!(are_rows(scan.await.unwrap(), fixture.all_rows()), "{policy}");
            }
            assert_free(&manager).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sparse_scan_does_not_wait_for_queued_loads() {
    let (bytes_per_second, request_bytes_max) = (1_000_000, 10_000);
    let fixture = Fixture::new(ROWS).await;
    let limits = Limits { bytes_per_second: Some(bytes_per_second), latency: Duration::ZERO };
    let table = fixture
        .table_of_chunks(GROUPS * CHUNK_ROWS, |store| Arc::new(LimitedStore::new(store, limits)))
        .await;
    let options = Options { request_bytes_max, ..Options::with_pool_bytes(LARGE, 4 << 20) };
    let manager = manager_with(options);
    let table = manager.register(table);
    let long = tokio::spawn(ids(manager.scan(&table, &[0, 1, 2], &[fixture.all_rows()]).unwrap()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(manager.report().loads_in_flight > 1, "each of half a megabyte");
    let asked = tokio::time::Instant::now();
    let found = in_time(ids(manager.scan(&table, &[0], &[35_000..35_001]).unwrap())).await;
    assert_eq!(found.unwrap(), [35_000]);
    // The page itself is 8 kB, a request at the device 10 kB; in line are some sixty of those.
    assert!(asked.elapsed() < Duration::from_millis(60), "{:?}", asked.elapsed());
    assert!(are_rows(in_time(long).await.unwrap(), fixture.all_rows()));
}
