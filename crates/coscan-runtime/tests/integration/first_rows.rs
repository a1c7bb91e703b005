//! A few first rows are read page by page. Whatever goes wrong, a scan gives each remaining row, once.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{CHUNK_ROWS, Fixture, LARGE, assert_free, in_time, int64s, manager, text_of};
use arrow_array::{Array, RecordBatch};
use coscan_runtime::core::{Order, PolicyKind};
use coscan_runtime::storage::table::ParquetTable;
use coscan_runtime::{BufferManager, FirstRows, ScanError, ScanRequest, SharedTable};
use coscan_testing::{Fate, Faults, parquet_file};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

const ROWS: u64 = 80_000;

/// Rows of a row group and of a chunk.
const GROUP_ROWS: u64 = ROWS / 2;

/// The file of the other tests in two large row groups of many pages.
fn file_bytes() -> Vec<u8> {
    let small = crate::common::file_bytes(ROWS, Compression::UNCOMPRESSED);
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(small)).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS as usize))
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(2000)
        .build();
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    parquet_file(&batches, properties)
}

async fn fixture() -> Fixture {
    Fixture::of_bytes(ROWS, file_bytes()).await
}

async fn table_behind(
    fixture: &Fixture,
    wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
) -> Arc<ParquetTable> {
    let table = fixture.table_of_chunks(GROUP_ROWS, wrap).await;
    assert_eq!(table.layout().chunks().count(), 2);
    table
}

fn first_rows(manager: &BufferManager, table: &SharedTable, rows: &[Range<u64>]) -> FirstRows {
    let all = ScanRequest::of_columns(table, vec![2, 0, 2]);
    let request = ScanRequest { rows: rows.to_vec(), order: Order::InOrder, ..all };
    manager.first_rows(table, request).unwrap()
}

/// Takes all batches, and checks that they have these rows, in this order.
async fn assert_gives(rows: &mut FirstRows, wanted: &[Range<u64>]) -> Vec<RecordBatch> {
    let batches: Vec<RecordBatch> = in_time(rows.try_collect()).await.unwrap();
    let ids: Vec<_> = batches.iter().flat_map(|batch| int64s(batch, 1)).collect();
    let wanted: Vec<_> =
        wanted.iter().flat_map(|rows| rows.start as i64..rows.end as i64).collect();
    assert_eq!(ids, wanted);
    for batch in &batches {
        for column in [0, 2] {
            let texts = batch.column(column).as_any();
            let texts = texts.downcast_ref::<arrow_array::StringViewArray>().unwrap();
            let texts: Vec<_> = texts.iter().flatten().map(str::to_owned).collect();
            assert_eq!(texts, int64s(batch, 1).into_iter().map(text_of).collect::<Vec<_>>());
        }
    }
    batches
}

#[tokio::test(start_paused = true)]
async fn few_rows_bypass_the_pool() {
    let fixture = fixture().await;
    let table = table_behind(&fixture, |store| store).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let shared = manager.register(Arc::clone(&table));
    for wanted in [vec![0..10], vec![0..2000, GROUP_ROWS..GROUP_ROWS + 7]] {
        fixture.metrics.reset();
        let mut rows = first_rows(&manager, &shared, &wanted);
        assert_eq!(
            fixture.metrics.snapshot().requests,
            0,
            "nothing is read before it is asked for"
        );
        let batches = assert_gives(&mut rows, &wanted).await;
        let held: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let count: u64 = wanted.iter().map(|rows| rows.end - rows.start).sum();
        assert!(held < 200 * count as usize + 1_000, "{held} bytes for {count} rows");
        assert_eq!(manager.report().decoded_bytes > 0, held > 0, "it is counted");
        drop(batches);
        let metrics = rows.metrics();
        assert_eq!(metrics.chunks.bytes_read, fixture.metrics.snapshot().bytes);
        assert!(metrics.chunks.bytes_read < 400_000, "{metrics:?}");
        assert_eq!(metrics.slices_decoded, 2 * wanted.len() as u64);
        assert_eq!(manager.report().pool_held_bytes, 0);
        drop(rows);
        assert_free(&manager).await;
    }
    // By now all of it is in the pool.
    let all = manager.scan(&shared, &[0, 1, 2], &[0..ROWS]).unwrap();
    in_time(all.try_for_each(|_| async { Ok(()) })).await.unwrap();
    fixture.metrics.reset();
    let mut rows = first_rows(&manager, &shared, &[0..10]);
    assert_gives(&mut rows, &[0..10]).await;
    assert_eq!(fixture.metrics.snapshot().requests, 0);
    assert!(rows.metrics().chunks.bytes_reused > 0);
}

#[tokio::test(start_paused = true)]
async fn a_scan_gives_what_cannot_be_read_so() {
    let fixture = fixture().await;
    let table = table_behind(&fixture, |store| store).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let shared = manager.register(table);
    for wanted in [
        vec![5..10],
        vec![0..10, 15..20],
        vec![0..10_000],
        vec![0..10, GROUP_ROWS + 1..GROUP_ROWS + 3],
        vec![0..10, ROWS - 5..ROWS],
    ] {
        let mut rows = first_rows(&manager, &shared, &wanted);
        assert_gives(&mut rows, &wanted).await;
        assert!(rows.metrics().chunks.chunks_delivered > 0, "{wanted:?}");
        drop(rows);
        assert_free(&manager).await;
    }
    let mut none = first_rows(&manager, &shared, &[]);
    assert_gives(&mut none, &[]).await;
    let unknown = ScanRequest::of_columns(&shared, vec![3]);
    let error = manager.first_rows(&shared, unknown).unwrap_err();
    assert!(matches!(error, ScanError::UnknownColumn { column: 3, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn small_chunks_are_read_whole() {
    let fixture = Fixture::new(4 * CHUNK_ROWS).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let shared = manager.register(fixture.table().await);
    let mut rows = first_rows(&manager, &shared, &[0..10]);
    assert_gives(&mut rows, &[0..10]).await;
    assert!(manager.report().pool_held_bytes > 0, "others find them in the pool");
}

#[tokio::test(start_paused = true)]
async fn failed_reads_are_retried_and_no_row_comes_twice() {
    for fate in [Fate::Fail, Fate::Short, Fate::Panic, Fate::Hang] {
        for first in [0, 2, 3] {
            let fixture = fixture().await;
            let faults = Faults::default();
            let table = table_behind(&fixture, |store| faults.around(store)).await;
            let reads = AtomicUsize::new(0);
            faults.judge(move |_| match reads.fetch_add(1, Ordering::Relaxed) {
                read if read == first => fate,
                _ => Fate::Answer,
            });
            let manager = manager(PolicyKind::Relevance, LARGE);
            let shared = manager.register(table);
            let wanted = [0..10, GROUP_ROWS..GROUP_ROWS + 10];
            let mut rows = first_rows(&manager, &shared, &wanted);
            assert_gives(&mut rows, &wanted).await;
            assert!(rows.metrics().chunks.chunks_delivered > 0, "{fate:?} {first}");
            drop(rows);
            assert_free(&manager).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_file_is_told() {
    let fixture = fixture().await;
    let table = table_behind(&fixture, |store| store).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let shared = manager.register(Arc::clone(&table));
    fixture.replace_file(file_bytes()).await;
    let mut rows = first_rows(&manager, &shared, &[0..10]);
    let error = in_time(rows.next()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("changed since"), "{error}");
    assert!(in_time(rows.next()).await.is_none());
    drop((rows, shared));

    let mut damaged = file_bytes();
    let column = crate::common::column_range(&table, 0, 0);
    damaged[column.start as usize..column.start as usize + 40].fill(0xff);
    fixture.replace_file(damaged).await;
    let table = table_behind(&fixture, |store| store).await;
    let shared = manager.register(table);
    let mut rows = first_rows(&manager, &shared, &[0..10]);
    let error = in_time(rows.next()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("column `id` of"), "{error}");
    drop(rows);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn without_memory_it_waits_as_scans_do() {
    let fixture = fixture().await;
    let table = table_behind(&fixture, |store| store).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let shared = manager.register(table);
    let memory = manager.operator_memory();
    let options = manager.options();
    let taken_bytes = options.memory_bytes - options.pool_bytes_min - 1000;
    assert!(memory.try_take(taken_bytes));
    let mut rows = first_rows(&manager, &shared, &[0..10]);
    let error = in_time(rows.next()).await.unwrap().unwrap_err();
    assert!(matches!(error, ScanError::Exhausted { .. }), "{error}");
    drop(rows);

    let mut rows = first_rows(&manager, &shared, &[0..10]);
    let give = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        memory.give(taken_bytes);
    };
    tokio::join!(assert_gives(&mut rows, &[0..10]), give);
    drop(rows);
    assert_free(&manager).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_releases_everything() {
    let fixture = fixture().await;
    let gate = Faults::default();
    let table = table_behind(&fixture, |store| gate.around(store)).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let shared = manager.register(table);
    gate.close();
    let mut rows = first_rows(&manager, &shared, &[0..10]);
    let asked = tokio::time::timeout(Duration::from_secs(1), rows.next()).await;
    assert!(asked.is_err(), "the store does not answer");
    assert!(manager.report().decoded_bytes > 0, "what is to be read is counted");
    drop(rows);
    assert_free(&manager).await;
    gate.open();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.metrics.snapshot().requests, 0, "nobody reads for it any more");
}
