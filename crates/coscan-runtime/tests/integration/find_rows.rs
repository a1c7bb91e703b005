//! Rows at which keys begin are found by statistics, and by reading the row groups that these leave open.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::Arc;

use crate::common::clustered::{Clustered, column_bytes};
use crate::common::{LARGE, assert_free, manager};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringViewArray};
use arrow_schema::SortOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::storage::table::{FileOptions, PageLayout};
use coscan_runtime::{ScanError, ScanLabel, find_rows};

const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };
const DESCENDING: SortOptions = SortOptions { descending: true, nulls_first: false };

const ROWS: usize = 10_000;

fn options() -> FileOptions {
    FileOptions { chunk_rows: 2000, ..FileOptions::default() }
}

async fn of_values(values: ArrayRef) -> Clustered {
    Clustered::of_values(values, &[4300, 0, 3700, 2000], 700).await
}

async fn of_ints(values: impl IntoIterator<Item = i64>) -> Clustered {
    of_values(Arc::new(Int64Array::from_iter_values(values))).await
}

fn ints(keys: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(keys))
}

async fn find(
    clustered: &Clustered,
    sorted: SortOptions,
    keys: &ArrayRef,
) -> Result<Option<Vec<u64>>, ScanError> {
    find_with(clustered, options(), sorted, keys).await.0
}

/// Finds rows. Also returns the bytes of the pages that were read.
async fn find_with(
    clustered: &Clustered,
    options: FileOptions,
    sorted: SortOptions,
    keys: &ArrayRef,
) -> (Result<Option<Vec<u64>>, ScanError>, u64) {
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(clustered.table(options).await);
    let found = find_rows(&manager, &table, 0, sorted, keys, ScanLabel::default()).await;
    assert_free(&manager).await;
    (found, manager.report().bytes_read)
}

#[tokio::test]
async fn keys_are_found_wherever_they_begin() {
    // From one to 900 rows of a key: some begin and end within a row group, some span several, and files.
    let lengths = [1, 3, 900, 250, 699, 1, 1500].into_iter().cycle();
    let mut ascending: Vec<i64> =
        lengths.zip(0..).flat_map(|(length, key)| vec![key * 3; length]).take(ROWS).collect();
    let last = ascending[ROWS - 1];
    for sorted in [ASCENDING, DESCENDING] {
        if sorted.descending {
            ascending.reverse();
        }
        let clustered = of_ints(ascending.iter().copied()).await;
        let is_before = |row: i64, key| if sorted.descending { row > key } else { row < key };
        // The keys are those that exist, between two, before and after all; not in their order.
        let keys: Vec<_> = (-2..last + 3).rev().chain([0, 7, 3]).collect();
        let expected: Vec<_> = keys
            .iter()
            .map(|&key| ascending.partition_point(|&row| is_before(row, key)) as u64)
            .collect();
        assert!(expected.contains(&0) && expected.contains(&(ROWS as u64)));
        let row_layout = FileOptions { layout: PageLayout::Row, ..options() };
        let split = FileOptions { chunk_rows: 300, ..options() };
        for options in [options(), row_layout, split] {
            let (found, _) = find_with(&clustered, options, sorted, &ints(keys.clone())).await;
            assert_eq!(found.unwrap().unwrap(), expected, "{sorted:?} {options:?}");
        }
    }
}

#[tokio::test]
async fn only_row_groups_that_statistics_leave_open_are_read() {
    let clustered = of_ints(0..ROWS as i64).await;
    // Row groups begin at these rows: 700 rows each, from the start of each file.
    let boundaries = ints([0, 700, 1400, 4300, 5000, 8000, 20_000]);
    let (found, read) = find_with(&clustered, options(), ASCENDING, &boundaries).await;
    assert_eq!(found.unwrap().unwrap(), [0, 700, 1400, 4300, 5000, 8000, ROWS as u64]);
    assert_eq!(read, 0, "statistics decide");

    let keys = ints([750, 790, 9000]);
    let (found, read) = find_with(&clustered, options(), ASCENDING, &keys).await;
    assert_eq!(found.unwrap().unwrap(), [750, 790, 9000]);
    let all = column_bytes(&*clustered.table(options()).await, &[0]);
    assert!(read > 0 && read < all / 2, "{read} of {all}");
}

#[tokio::test]
async fn rows_out_of_order_are_noticed() {
    let swapped = |a: usize, b: usize| {
        let mut keys: Vec<_> = (0..ROWS as i64).collect();
        keys.swap(a, b);
        keys
    };
    // Neighbours, rows of two row groups, of two batches, of two files.
    for (a, b) in [(800, 801), (800, 1900), (4299, 4300)] {
        let clustered = of_ints(swapped(a, b)).await;
        let keys = ints([(a as i64 + b as i64) / 2 + 1]);
        let found = find(&clustered, ASCENDING, &keys).await.unwrap();
        assert_eq!(found, None, "rows {a} and {b}");
    }
    let ascending = of_ints(0..ROWS as i64).await;
    assert_eq!(find(&ascending, DESCENDING, &ints([700, 5])).await.unwrap(), None);
    let nulls = (0..ROWS as i64).map(|key| (key != 800).then_some(key));
    let nulls = of_values(Arc::new(Int64Array::from_iter(nulls))).await;
    assert_eq!(find(&nulls, ASCENDING, &ints([4])).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_that_is_not_sorted_is_not_read_again_to_find_that_out() {
    let mut keys: Vec<_> = (0..ROWS as i64).collect();
    keys.swap(800, 900);
    let clustered = of_ints(keys).await;
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(clustered.table(options()).await);
    let find = async |key| {
        let keys = ints([key]);
        let found = find_rows(&manager, &table, 0, ASCENDING, &keys, ScanLabel::default()).await;
        found.unwrap()
    };
    assert_eq!(find(850).await, None);
    assert_free(&manager).await;
    manager.evict_unneeded();
    let read = manager.report().bytes_read;
    assert!(read > 0);
    assert_eq!(find(860).await, None);
    assert_eq!(find(810).await, None);
    assert_eq!(manager.report().bytes_read, read);
    // Statistics decide, or another file is read.
    assert_eq!(find(1400).await, Some(vec![1400]));
    assert_eq!(find(8001).await, Some(vec![8001]));
    assert!(manager.report().bytes_read > read);
}

#[tokio::test]
async fn strings_and_floats_are_found() {
    // The keys are longer than statistics are.
    let text = |key: usize| format!("{}{key:05}", "long ".repeat(30));
    let texts = StringViewArray::from_iter_values((0..ROWS).map(|row| text(row / 7)));
    let clustered = of_values(Arc::new(texts)).await;
    let keys = [0, 100, 101, 900, 2000].map(text);
    let keys: ArrayRef = Arc::new(StringViewArray::from_iter_values(keys));
    let found = find(&clustered, ASCENDING, &keys).await.unwrap().unwrap();
    assert_eq!(found, [0, 700, 707, 6300, ROWS as u64]);

    // NaN sorts last, and statistics ignore it.
    let value = |row| if row < 9990 { row as f64 / 2.0 } else { f64::NAN };
    let clustered = of_values(Arc::new(Float64Array::from_iter_values((0..ROWS).map(value)))).await;
    let keys: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 350.0, 1e9, f64::NAN]));
    let found = find(&clustered, ASCENDING, &keys).await.unwrap().unwrap();
    assert_eq!(found, [1, 700, 9990, 9990]);
}

#[tokio::test]
async fn keys_of_another_type_are_refused() {
    let clustered = of_ints(0..ROWS as i64).await;
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![5]));
    let refused = find(&clustered, ASCENDING, &keys).await.unwrap_err();
    assert!(refused.to_string().contains("cast them"), "{refused}");
    let manager = manager(PolicyKind::Relevance, LARGE);
    let table = manager.register(clustered.table(options()).await);
    let refused = find_rows(&manager, &table, 3, ASCENDING, &keys, ScanLabel::default()).await;
    assert!(matches!(refused, Err(ScanError::UnknownColumn { column: 3, columns: 3 })));
}
