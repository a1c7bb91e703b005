//! Scans that run at the same time: right rows for each, one read and one decoding for all.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    CHUNK_ROWS, Fixture, LARGE, ids, int64s, largest_chunk_bytes, manager, manager_with, sorted,
    text_of,
};
use arrow_array::{Array, RecordBatch, StringViewArray};
use coscan_runtime::core::{Order, PolicyKind};
use coscan_runtime::storage::table::{FileOptions, PageLayout};
use coscan_runtime::{Options, ScanRequest};
use futures::TryStreamExt;
use futures::future::try_join_all;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_of_the_same_rows_read_each_page_once() {
    for policy in PolicyKind::ALL {
        let fixture = Fixture::new(20 * CHUNK_ROWS).await;
        let manager = manager(policy, LARGE);
        let table = manager.register(fixture.table().await);
        let scans = (0..8).map(|_| ids(manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap()));
        let scans: Vec<_> = scans.map(tokio::spawn).collect();
        for scan in try_join_all(scans).await.unwrap() {
            assert!(sorted(scan.unwrap()).into_iter().eq(0..20_000), "{policy}");
        }
        let layout = Arc::clone(table.table().layout());
        let column_bytes: u64 = layout
            .chunks()
            .flat_map(|chunk| layout.slice(chunk, table.table().group_of_column(0)).to_vec())
            .map(|page| layout.bytes_of(page))
            .sum();
        let read = fixture.metrics.snapshot();
        assert_eq!((read.requests, read.bytes), (20, column_bytes), "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_right_under_every_policy_and_with_the_smallest_pool() {
    for policy in PolicyKind::ALL {
        let fixture = Fixture::new(12 * CHUNK_ROWS + 17).await;
        let largest_chunk = largest_chunk_bytes(fixture.table().await.as_ref());
        for pool_bytes in [largest_chunk, 3 * largest_chunk, LARGE] {
            let manager = manager(policy, pool_bytes);
            let table = manager.register(fixture.table().await);
            let wishes: [(&[usize], std::ops::Range<u64>); 5] = [
                (&[0, 1, 2], 0..12_017),
                (&[0], 0..12_017),
                (&[0, 2], 3_000..9_000),
                (&[0, 1], 500..600),
                (&[0, 1], 11_999..12_017),
            ];
            let scans = wishes.map(|(columns, rows)| {
                let stream = manager.scan(&table, columns, std::slice::from_ref(&rows)).unwrap();
                tokio::spawn(async move { (rows, ids(stream).await) })
            });
            for scan in scans {
                let (rows, ids) = scan.await.unwrap();
                let expected = rows.start as i64..rows.end as i64;
                assert!(
                    sorted(ids.unwrap()).into_iter().eq(expected),
                    "{policy}, pool of {pool_bytes}"
                );
            }
            assert_eq!(manager.report().scans, 0, "scans end with their streams");
            assert!(manager.report().held_bytes_max <= manager.report().memory_bytes);
        }
    }
}

#[tokio::test]
async fn columns_come_as_asked_also_twice_and_none() {
    let fixture = Fixture::new(2500).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let stream = manager.scan(&table, &[2, 0, 2], &[0..10, 2490..2500]).unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    let mut rows = 0;
    for batch in &batches {
        let texts = [0, 2]
            .map(|column| batch.column(column).as_any().downcast_ref::<StringViewArray>().unwrap());
        for (row, id) in int64s(batch, 1).into_iter().enumerate() {
            assert_eq!([texts[0].value(row), texts[1].value(row)], [text_of(id), text_of(id)]);
            assert!((0..10).contains(&id) || (2490..2500).contains(&id));
            rows += 1;
        }
    }
    assert_eq!(rows, 20);

    let counted: Vec<RecordBatch> =
        manager.scan(&table, &[], &[fixture.all_rows()]).unwrap().try_collect().await.unwrap();
    assert_eq!(counted.iter().map(RecordBatch::num_rows).sum::<usize>(), 2500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_a_scan_and_keep_order_if_asked() {
    let fixture = Fixture::new(30 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    for order in [Order::Any, Order::InOrder] {
        let request = ScanRequest { workers: 3, order, ..ScanRequest::of_columns(&table, vec![0]) };
        let scan = manager.start_scan(&table, request).unwrap();
        let workers: Vec<_> = (0..3).map(|worker| tokio::spawn(ids(scan.worker(worker)))).collect();
        let mut all = Vec::new();
        for worker in try_join_all(workers).await.unwrap() {
            let worker = worker.unwrap();
            assert!(order == Order::Any || worker.is_sorted());
            all.extend(worker);
        }
        assert!(sorted(all).into_iter().eq(0..30_000));
        let metrics = scan.metrics();
        assert_eq!((metrics.chunks.chunks_needed, metrics.chunks.chunks_delivered), (30, 30));
    }
}

#[tokio::test]
async fn what_a_query_passed_on_counts_until_it_is_gone() {
    let fixture = Fixture::new(4 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(fixture.table().await);
    let stream = manager.scan(&table, &[0, 2], &[fixture.all_rows()]).unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    let ids_bytes = 4 * CHUNK_ROWS * 8;
    assert!(manager.report().decoded_bytes >= ids_bytes, "{:?}", manager.report());
    drop(batches);
    assert_eq!(manager.report().decoded_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_pauses_keeps_no_processor_from_others() {
    let fixture = Fixture::new(20 * CHUNK_ROWS).await;
    let options = Options { active_workers_max: 1, ..Options::with_pool_bytes(LARGE, 4 << 20) };
    let manager = manager_with(options);
    let table = manager.register(fixture.table().await);
    let mut paused = manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap();
    paused.try_next().await.unwrap().unwrap();

    let started = tokio::time::Instant::now();
    let others = ids(manager.scan(&table, &[0], &[fixture.all_rows()]).unwrap()).await.unwrap();
    assert!(sorted(others).into_iter().eq(0..20_000));
    // In virtual time: once until the pause is noticed, not once per chunk until the space timeout.
    assert!(started.elapsed() < Duration::from_millis(100), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_name_may_stand_for_tables_that_are_read_in_other_ways() {
    let fixture = Fixture::new(2 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let row = FileOptions { layout: PageLayout::Row, ..FileOptions::default() };
    let tables = [fixture.table().await, fixture.table_opened(row, |store| store).await];
    let tables = tables.map(|table| manager.register_snapshot("name", table));
    assert_ne!(tables[0].id(), tables[1].id());
    for table in &tables {
        let scan = manager.scan(table, &[0, 1], &[fixture.all_rows()]).unwrap();
        assert!(sorted(ids(scan).await.unwrap()).into_iter().eq(0..2_000));
    }
}
