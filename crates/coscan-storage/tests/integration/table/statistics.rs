//! The statistics of chunks against the values in them.

use std::sync::Arc;

use arrow::array::make_comparator;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::SortOptions;
use coscan_core::{ChunkIndex, Index};
use coscan_storage::table::ParquetTable;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::table::support::{
    decode, open, options, read_all, row_groups, rows, small_pages, write,
};

/// Asserts that all statistics of the chunks are true. Returns how many bounds and counts are known.
async fn assert_true(table: &ParquetTable) -> usize {
    let pages = read_all(table).await;
    let mut known = 0;
    for (column, field) in table.schema().fields().iter().enumerate() {
        let statistics = table.statistics(column).unwrap();
        assert_eq!(statistics.min.data_type(), field.data_type());
        assert_eq!(statistics.max.data_type(), field.data_type());
        for chunk in table.layout().chunks() {
            let (entry, name) = (chunk.as_usize(), field.name());
            let values = decode(table, &pages, chunk, column, None, 10_000).unwrap();
            assert_eq!(statistics.row_count.value(entry), values.len() as u64);
            if statistics.null_count.is_valid(entry) {
                let nulls = values.logical_null_count() as u64;
                assert_eq!(statistics.null_count.value(entry), nulls, "{name}, chunk {chunk}");
                known += 1;
            }
            for (bounds, wrong) in [
                (&statistics.min, std::cmp::Ordering::Less),
                (&statistics.max, std::cmp::Ordering::Greater),
            ] {
                if bounds.is_null(entry) {
                    continue;
                }
                known += 1;
                let compare = make_comparator(&values, bounds, SortOptions::default()).unwrap();
                let mut rows = (0..values.len()).filter(|&row| values.is_valid(row));
                assert!(rows.all(|row| compare(row, entry) != wrong), "{name}, chunk {chunk}");
            }
        }
    }
    known
}

fn int64(array: &ArrayRef) -> Vec<Option<i64>> {
    array.as_primitive::<Int64Type>().iter().collect()
}

#[tokio::test]
async fn of_whole_row_groups() {
    let files =
        [write(&[rows(0..1000)], row_groups(150)), write(&[rows(1000..1400)], row_groups(400))];
    let table = open(&files, options(300)).await;
    let key = table.statistics(0).unwrap();
    assert_eq!(int64(&key.min), [Some(0), Some(300), Some(600), Some(1000)]);
    assert_eq!(int64(&key.max), [Some(299), Some(599), Some(999), Some(1399)]);
    assert_eq!(key.null_count, UInt64Array::from(vec![0; 4]));
    assert_eq!(key.row_count, UInt64Array::from(vec![300, 300, 400, 400]));
    assert!(assert_true(&table).await >= 4 * 3 * 18);
}

#[tokio::test]
async fn of_parts_of_a_row_group() {
    let table = open(&[write(&[rows(0..3000)], small_pages().build())], options(700)).await;
    let key = table.statistics(0).unwrap();
    let (min, max) = (int64(&key.min), int64(&key.max));
    for (part, (min, max)) in min.into_iter().zip(max).enumerate() {
        let rows = (part as i64 * 750)..(part as i64 + 1) * 750;
        let (min, max) = (min.unwrap(), max.unwrap());
        assert!(min <= rows.start && rows.end - 1 <= max, "{min}..={max} of {rows:?}");
        assert!(
            rows.start - min < 200 && max - rows.end < 200,
            "{min}..={max} of {rows:?}: not near"
        );
    }
    assert_eq!(key.null_count, UInt64Array::from(vec![0; 4]));
    assert!(assert_true(&table).await >= 4 * 2 * 18);
}

#[tokio::test]
async fn of_parts_without_a_column_index_are_those_of_the_row_group() {
    let properties = small_pages().set_statistics_enabled(EnabledStatistics::Chunk).build();
    let table = open(&[write(&[rows(0..3000)], properties)], options(700)).await;
    assert_eq!(table.layout().chunk_count(), 4, "the offset index is there");
    let key = table.statistics(0).unwrap();
    assert_eq!(int64(&key.min), [Some(0); 4]);
    assert_eq!(int64(&key.max), [Some(2999); 4]);
    assert_eq!(key.null_count, UInt64Array::from(vec![0; 4]));
    assert!(
        table.statistics(1).unwrap().null_count.null_count() == 4,
        "unknown which part has the nulls"
    );
    assert_true(&table).await;
}

#[tokio::test]
async fn unknown_in_one_row_group_is_unknown_but_nulls_have_no_say() {
    let batch = |values: Vec<Option<i64>>| {
        RecordBatch::try_from_iter_with_nullable([(
            "a",
            Arc::new(Int64Array::from(values)) as ArrayRef,
            true,
        )])
        .unwrap()
    };
    let nulls = [batch(vec![Some(5), Some(3)]), batch(vec![None, None])];
    let table = open(&[write(&nulls, row_groups(2))], options(4)).await;
    let found = table.statistics(0).unwrap();
    assert_eq!((int64(&found.min), int64(&found.max)), (vec![Some(3)], vec![Some(5)]));
    assert_eq!(found.null_count, UInt64Array::from(vec![2]));

    let none = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).build();
    let files = [write(&nulls, none), write(&[batch(vec![Some(1)])], row_groups(2))];
    let found = open(&files, options(4)).await.statistics(0).unwrap();
    assert_eq!(int64(&found.min), [None, Some(1)]);
    assert_eq!((found.null_count.is_null(0), found.null_count.value(1)), (true, 0));
}

#[tokio::test]
async fn truncated_bounds_are_still_bounds() {
    let text = StringArray::from(vec!["x".repeat(100), "y".repeat(100)]);
    let batch = RecordBatch::try_from_iter([("a", Arc::new(text) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder().set_statistics_truncate_length(Some(8)).build();
    let table = open(&[write(&[batch], properties)], options(4)).await;
    let found = table.statistics(0).unwrap();
    assert_eq!(found.min.as_string_view().value(0), "xxxxxxxx");
    assert_eq!(found.max.as_string_view().value(0), "yyyyyyyz");
}

#[tokio::test]
async fn no_nan_is_known_of_chunks_decoded_whole() {
    // Two chunks of two row groups each; NaN in the third row group, and 0.0 in place of NULL.
    let float = |row: i64| match row {
        250 => Some(f64::NAN),
        row => (row % 7 > 0).then_some(row as f64),
    };
    let columns: [(&str, ArrayRef); 3] = [
        ("f", Arc::new((0..400).map(float).collect::<Float64Array>())),
        ("i", Arc::new((0..400).collect::<Int64Array>())),
        ("t", Arc::new((0..400).map(|row| Some(row.to_string())).collect::<StringArray>())),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
    let table = open(&[write(&[batch.unwrap()], row_groups(100))], options(200)).await;
    let pages = read_all(&table).await;
    let known = || (table.chunks_without_nan(0), table.zones_without_nan(0));
    let unknown = (vec![false; 2], vec![false; 4]);
    let [first, second] = [0, 1].map(ChunkIndex);
    decode(&table, &pages, first, 0, Some(&[0..100, 101..200]), 1000).unwrap();
    let mut decoder = table.decode(first, 0, &|page| pages[&page].clone(), None, 50).unwrap();
    decoder.by_ref().take(3).for_each(|rows| assert_eq!(rows.unwrap().len(), 50));
    drop(decoder);
    assert_eq!(known(), unknown, "some of the rows");
    for chunk in [first, second] {
        decode(&table, &pages, chunk, 0, None, 50).unwrap();
    }
    assert_eq!(known(), (vec![true, false], vec![true, true, false, false]));
    assert!(table.is_without_nan(first, 0) && !table.is_without_nan(second, 0));
    assert_eq!(
        (table.chunks_without_nan(1), table.chunks_without_nan(2)),
        (vec![true; 2], vec![false; 2])
    );
}
