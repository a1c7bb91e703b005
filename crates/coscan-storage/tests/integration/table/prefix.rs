//! The first rows of a chunk, from the first pages of its columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use bytes::Bytes;
use coscan_core::ChunkIndex;
use coscan_storage::table::{ColumnPrefix, DecodeError, ParquetTable};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};

use crate::table::support::{open, options, reference, row_groups, rows, small_pages, write};

/// Reads from a file all that a prefix wants, and nothing else. Returns the prefix with the number of times that it
/// wanted more, and the bytes read.
fn read(mut prefix: ColumnPrefix, file: &Bytes) -> Result<(ColumnPrefix, usize, u64), DecodeError> {
    let (mut rounds, mut read_bytes) = (0, 0);
    loop {
        let wanted = prefix.wanted();
        if wanted.is_empty() {
            return Ok((prefix, rounds, read_bytes));
        }
        rounds += 1;
        let part = |range: &Range<u64>| file.slice(range.start as usize..range.end as usize);
        read_bytes += wanted.iter().map(|range| range.end - range.start).sum::<u64>();
        prefix.push(wanted.iter().map(part).collect())?;
        assert!(prefix.needed_bytes() <= prefix.all_bytes());
    }
}

fn first_rows(table: &ParquetTable, prefix: &ColumnPrefix) -> Result<ArrayRef, DecodeError> {
    let mut decoder = table.decode_prefix(prefix)?;
    let array = decoder.next().expect("one array")?;
    assert!(decoder.next().is_none(), "all rows are in the first array");
    Ok(array)
}

/// Layouts of pages: small and large, with and without a page index, of both versions, compressed in each way.
fn layouts() -> Vec<(String, WriterProperties)> {
    let mut layouts = Vec::new();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for (number, codec) in codecs.into_iter().enumerate() {
            let large = WriterProperties::builder().set_data_page_row_count_limit(usize::MAX);
            let plain = large.clone().set_dictionary_enabled(false);
            let middle = WriterProperties::builder().set_data_page_row_count_limit(1500);
            let pages =
                [("small", small_pages()), ("large", large), ("plain", plain), ("middle", middle)];
            for (size, (name, builder)) in pages.into_iter().enumerate() {
                let builder = builder.set_writer_version(version).set_compression(codec);
                let has_index = (number + size) % 2 == 0;
                let builder = if has_index { builder } else { unindexed(builder) };
                let name = format!("{name} pages, {version:?}, {codec}, index: {has_index}");
                layouts.push((name, builder.build()));
            }
        }
    }
    layouts
}

fn unindexed(builder: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    builder.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(true)
}

#[tokio::test]
async fn the_first_rows_are_those_of_the_chunk() {
    let batch = rows(0..3000);
    for (layout, properties) in layouts() {
        let file = write(std::slice::from_ref(&batch), properties);
        let table = open(std::slice::from_ref(&file), options(10_000)).await;
        let expected = reference(&table, std::slice::from_ref(&file));
        for (column, field) in table.schema().fields().iter().enumerate() {
            for count in [1, 10, 201, 1777] {
                let prefix = table.prefix(ChunkIndex(0), column, count).unwrap();
                let (prefix, ..) = read(prefix, &file).unwrap();
                let found = first_rows(&table, &prefix).unwrap();
                let wanted = expected.column(column).slice(0, count as usize);
                assert_eq!(&found, &wanted, "{count} rows of {} in {layout}", field.name());
            }
        }
        assert!(table.prefix(ChunkIndex(0), 0, 3001).is_none());
    }
}

#[tokio::test]
async fn the_first_rows_may_all_be_null() {
    let late = (0..3000).map(|row| (row >= 500).then(|| format!("value {row}")));
    let late: ArrayRef = Arc::new(late.collect::<StringArray>());
    let never: ArrayRef = Arc::new(Int64Array::new_null(3000));
    let flags: ArrayRef =
        Arc::new((0..3000).map(|row| (row > 20).then_some(row % 2 == 0)).collect::<BooleanArray>());
    let columns = [("late", late), ("never", never), ("flags", flags)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for (layout, properties) in layouts() {
        let file = write(std::slice::from_ref(&batch), properties);
        let table = open(std::slice::from_ref(&file), options(10_000)).await;
        let expected = reference(&table, std::slice::from_ref(&file));
        for column in 0..3 {
            for count in [1, 20, 21, 22, 500, 501, 2999] {
                let prefix = table.prefix(ChunkIndex(0), column, count).unwrap();
                let (prefix, ..) = read(prefix, &file).unwrap();
                let found = first_rows(&table, &prefix).unwrap();
                let wanted = expected.column(column).slice(0, count as usize);
                assert_eq!(&found, &wanted, "{count} rows of column {column} in {layout}");
            }
        }
    }
}

#[tokio::test]
async fn no_page_is_read_behind_the_last_wanted_row() {
    let builder = || {
        let pages = WriterProperties::builder().set_data_page_row_count_limit(2000);
        pages.set_dictionary_enabled(false)
    };
    let second = builder().set_writer_version(WriterVersion::PARQUET_2_0);
    for (properties, says_rows) in
        [(builder(), true), (unindexed(second), true), (unindexed(builder()), false)]
    {
        let file = write(&vec![rows(0..3000); 14], properties.build());
        let table = open(std::slice::from_ref(&file), options(100_000)).await;
        for (column, field) in table.schema().fields().iter().enumerate() {
            let prefix = table.prefix(ChunkIndex(0), column, 10).unwrap();
            let all_bytes = prefix.all_bytes();
            let (_, _, read_bytes) = read(prefix, &file).unwrap();
            let is_repeated = matches!(
                field.data_type(),
                DataType::List(_)
                    | DataType::LargeList(_)
                    | DataType::FixedSizeList(..)
                    | DataType::Map(..)
            );
            let name = field.name();
            if says_rows || !is_repeated {
                // A header is read with the bytes after it, in each leaf.
                let most = all_bytes / 3 + 40_000;
                assert!(read_bytes <= most, "{read_bytes} of {all_bytes} of {name}");
            } else {
                assert_eq!(read_bytes, all_bytes, "nothing says which rows pages of {name} hold");
            }
        }
    }
}

#[tokio::test]
async fn rows_of_several_row_groups_come_together() {
    for index in [true, false] {
        let builder = small_pages().set_max_row_group_row_count(Some(300));
        let builder = if index { builder } else { unindexed(builder) };
        let file = write(&[rows(0..3000)], builder.build());
        let table = open(std::slice::from_ref(&file), options(3000)).await;
        let expected = reference(&table, std::slice::from_ref(&file));
        for column in 0..table.schema().fields().len() {
            for count in [299, 300, 301, 950] {
                let prefix = table.prefix(ChunkIndex(0), column, count).unwrap();
                let (prefix, ..) = read(prefix, &file).unwrap();
                let found = first_rows(&table, &prefix).unwrap();
                assert_eq!(&found, &expected.column(column).slice(0, count as usize));
            }
        }
    }
}

#[tokio::test]
async fn a_column_that_a_file_lacks_is_repeated() {
    let all = rows(0..100);
    let key = all.project(&[0]).unwrap();
    let files = [write(&[all], row_groups(100)), write(&[key], row_groups(100))];
    let table = open(&files, options(100)).await;
    let prefix = table.prefix(ChunkIndex(1), 1, 10).unwrap();
    assert!(prefix.wanted().is_empty());
    let array = first_rows(&table, &prefix).unwrap();
    assert_eq!((array.len(), array.null_count()), (10, 10));
}

#[tokio::test]
async fn a_part_of_a_row_group_that_begins_in_the_middle_has_no_prefix() {
    let table = open(&[write(&[rows(0..3000)], small_pages().build())], options(1000)).await;
    assert!(table.layout().chunks().count() > 1);
    assert!(table.prefix(ChunkIndex(0), 0, 10).is_some());
    assert!(table.prefix(ChunkIndex(1), 0, 10).is_none());
}

#[tokio::test]
async fn damaged_pages_are_errors_or_other_values() {
    let properties = || small_pages().set_compression(Compression::SNAPPY);
    for properties in [properties().build(), unindexed(properties()).build()] {
        let file = write(&[rows(0..2000)], properties);
        let table = open(std::slice::from_ref(&file), options(10_000)).await;
        let mut errors = 0;
        for column in 0..table.schema().fields().len() {
            let leaf = table.parquet_metadata(0).row_group(0).column(column);
            let start = leaf.byte_range().0 as usize;
            for at in (start..start + 200).step_by(3) {
                let mut damaged = file.to_vec();
                damaged[at] ^= 0x55;
                let prefix = table.prefix(ChunkIndex(0), column, 300).unwrap();
                let found = read(prefix, &damaged.into())
                    .and_then(|(prefix, ..)| first_rows(&table, &prefix));
                match found {
                    Ok(array) => assert_eq!(array.len(), 300),
                    Err(error) => {
                        errors += 1;
                        assert!(error.to_string().contains("damaged"), "{error}");
                    }
                }
            }
        }
        assert!(errors > 0);
    }
}

#[tokio::test]
async fn missing_bytes_are_an_error() {
    let file = write(&[rows(0..2000)], unindexed(small_pages()).build());
    let table = open(std::slice::from_ref(&file), options(10_000)).await;
    let prefix = table.prefix(ChunkIndex(0), 0, 300).unwrap();
    let error = first_rows(&table, &prefix).unwrap_err();
    assert!(error.to_string().contains("`key`"), "{error}");
}
