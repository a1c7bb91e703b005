//! A scan that gets further needs while it runs.

use crate::common::{CHUNK_ROWS, Fixture, LARGE, ids, largest_chunk_bytes, manager, sorted};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use coscan_runtime::core::{ChunkIndex, Index, PolicyKind};
use coscan_runtime::{ScanError, ScanRequest};
use parquet::arrow::ArrowWriter;
use std::sync::Arc;

fn chunks(numbers: impl IntoIterator<Item = usize>) -> Vec<ChunkIndex> {
    numbers.into_iter().map(ChunkIndex::from_usize).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_goes_on_with_what_is_added() {
    for policy in PolicyKind::ALL {
        let fixture = Fixture::new(10 * CHUNK_ROWS).await;
        let manager = manager(policy, LARGE);
        let table = manager.register(fixture.table().await);
        // Only a part of chunk 3 is needed.
        let request = ScanRequest {
            rows: vec![0..3_500, 4_000..10_000],
            workers: 2,
            ..ScanRequest::of_columns(&table, vec![0])
        };
        let scan = manager.start_scan_of(&table, request, &chunks([1, 8])).unwrap();
        let first = ids(scan.worker(0)).await.unwrap();
        assert!(sorted(first).into_iter().eq((1_000..2_000).chain(8_000..9_000)), "{policy}");
        assert!(scan.is_handed_out());

        scan.extend(&chunks([0, 3])).unwrap();
        assert!(!scan.is_handed_out());
        assert_eq!(scan.remaining(), chunks([0, 3]));
        let again = ids(scan.worker(0)).await.unwrap();
        assert!(sorted(again).into_iter().eq((0..1_000).chain(3_000..3_500)), "{policy}");

        scan.extend(&chunks([5, 6, 7])).unwrap();
        assert_eq!(scan.prune(&chunks([1, 6, 9])).len(), 1, "the others are not needed");
        let other = ids(scan.worker(1)).await.unwrap();
        assert!(sorted(other).into_iter().eq((5_000..6_000).chain(7_000..8_000)), "{policy}");

        let mut handed = scan.handed();
        handed.sort_unstable();
        let by_worker = [(0, 0), (1, 0), (3, 0), (5, 1), (7, 1), (8, 0)];
        let by_worker = by_worker.map(|(chunk, worker)| (ChunkIndex::from_usize(chunk), worker));
        assert_eq!(handed, by_worker, "{policy}");
        let report = scan.metrics().chunks;
        assert_eq!((report.chunks_needed, report.chunks_delivered), (7, 6), "{policy}");
    }
}

#[tokio::test]
async fn what_can_never_fit_is_not_added() {
    let fixture = Fixture::new(3 * CHUNK_ROWS).await;
    let table = fixture.table().await;
    // The numbers of the first chunk have fewer digits.
    let manager = manager(PolicyKind::Relevance, largest_chunk_bytes(&table) - 1);
    let table = manager.register(table);
    let request = ScanRequest::of_columns(&table, vec![0, 1, 2]);
    let scan = manager.start_scan_of(&table, request, &chunks([0])).unwrap();
    let error = scan.extend(&chunks([2])).unwrap_err();
    assert!(matches!(error.error, ScanError::Start(_)), "{error}");
    assert_eq!(error.left, chunks([2]));
    assert!(error.to_string().contains("give the pool at least that much"), "{error}");
    assert_eq!(ids(scan.worker(0)).await.unwrap().len(), 1_000, "it has what it had");
}

/// A row a row group; the text of the last one is long.
fn rows_and_a_long_one(rows: usize) -> Vec<u8> {
    let row = |row: usize| {
        let text = if row + 1 == rows { "long ".repeat(20_000) } else { String::new() };
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(Int64Array::from(vec![row as i64]))),
            ("text", Arc::new(StringArray::from(vec![text]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let mut writer = ArrowWriter::try_new(Vec::new(), row(0).schema(), None).unwrap();
    for number in 0..rows {
        writer.write(&row(number)).unwrap();
        writer.flush().unwrap();
    }
    writer.into_inner().unwrap()
}

#[tokio::test]
async fn what_was_added_before_an_error_is_not_added_again() {
    const ROWS: usize = 1100;
    let fixture = Fixture::of_bytes(ROWS as u64, rows_and_a_long_one(ROWS)).await;
    let table = fixture.table_of_chunks(1, |store| store).await;
    let manager = manager(PolicyKind::Relevance, largest_chunk_bytes(&table) - 1);
    let table = manager.register(table);
    let request = ScanRequest::of_columns(&table, vec![0, 1]);
    let scan = manager.start_scan_of(&table, request, &chunks([0])).unwrap();
    let error = scan.extend(&chunks(1..ROWS)).unwrap_err();
    let added = scan.remaining();
    assert!(
        added.len() > 1000 && !error.left.is_empty(),
        "{} and {}",
        added.len(),
        error.left.len()
    );
    assert_eq!([&added[1..], &error.left].concat(), chunks(1..ROWS));
    let read = ids(scan.worker(0)).await.unwrap();
    // All chunks that are left but the long one.
    scan.extend(&error.left[..error.left.len() - 1]).unwrap();
    let rest = ids(scan.worker(0)).await.unwrap();
    assert!(sorted([read, rest].concat()).into_iter().eq(0..ROWS as i64 - 1), "every row once");
}
