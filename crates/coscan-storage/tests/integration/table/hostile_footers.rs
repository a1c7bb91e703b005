//! Footers that name far more than there is, or that point nowhere: an error when the file is opened, whatever they
//! contain.

use std::io::Write;

use bytes::Bytes;
use coscan_storage::table::{FileOptions, PageLayout, TableError};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnChunkMetaDataBuilder, PageIndexPolicy, ParquetMetaData,
    ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData, RowGroupMetaDataBuilder,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::TrackedWrite;

use crate::table::support::{options, row_groups, rows, small_pages, try_open, write};

/// A file with many data pages in each of two row groups.
fn sound() -> Bytes {
    let properties: WriterProperties =
        small_pages().set_max_row_group_row_count(Some(1_000)).build();
    write(&[rows(0..2_000)], properties)
}

/// The file with another footer and page index in place of its own.
fn with_footer(sound: &Bytes, damage: impl FnOnce(&mut Vec<RowGroupMetaData>)) -> Bytes {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let mut builder = reader.parse_and_finish(sound).unwrap().into_builder();
    let mut row_groups = builder.take_row_groups();
    damage(&mut row_groups);
    rewrite(sound, &builder.set_row_groups(row_groups).build())
}

/// Data with a footer after it.
fn rewrite(data: &[u8], metadata: &ParquetMetaData) -> Bytes {
    let mut file = Vec::new();
    let mut writer = TrackedWrite::new(&mut file);
    writer.write_all(data).unwrap();
    ParquetMetaDataWriter::new_with_tracked(writer, metadata).finish().unwrap();
    file.into()
}

fn change_row_group(
    row_group: &mut RowGroupMetaData,
    change: impl FnOnce(RowGroupMetaDataBuilder) -> RowGroupMetaDataBuilder,
) {
    *row_group = change(row_group.clone().into_builder()).build().unwrap();
}

fn change_columns(
    row_group: &mut RowGroupMetaData,
    change: impl Fn(&ColumnChunkMetaData, ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder,
) {
    let columns = row_group.columns().iter();
    let columns = columns.map(|column| change(column, column.clone().into_builder()).build());
    let columns = columns.collect::<Result<_, _>>().unwrap();
    change_row_group(row_group, |builder| builder.set_column_metadata(columns));
}

/// The reason why a damaged file does not open, in either layout.
async fn reason(file: Bytes) -> String {
    let mut reasons = Vec::new();
    for layout in [PageLayout::Column, PageLayout::Row] {
        let options = FileOptions { chunk_rows: 100, layout, ..FileOptions::default() };
        match try_open(std::slice::from_ref(&file), options).await {
            Err(TableError::Corrupt { reason, .. }) => reasons.push(reason),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reasons[0], reasons[1]);
    reasons.remove(0)
}

fn assert_says(reason: &str, part: &str) {
    assert!(reason.contains(part), "{reason}");
}

#[tokio::test]
async fn the_footer_itself_may_be_written_anew() {
    let file = with_footer(&sound(), |_| {});
    let table = try_open(&[file], options(100)).await.unwrap();
    assert_eq!((table.layout().row_count(), table.layout().chunk_count()), (2_000, 20));
}

#[tokio::test]
async fn more_rows_than_values() {
    for rows in [1_001, 1 << 40, 1 << 60, 1 << 62] {
        let file = with_footer(&sound(), |row_groups| {
            change_row_group(&mut row_groups[1], |builder| builder.set_num_rows(rows));
        });
        let reason = reason(file).await;
        assert_says(&reason, "row group 1 has");
        assert_says(&reason, &format!("{rows} rows"));
    }
}

#[tokio::test]
async fn more_rows_than_the_bytes_can_hold() {
    for rows in [1 << 47, 1 << 60] {
        let file = with_footer(&sound(), |row_groups| {
            change_columns(&mut row_groups[0], |_, builder| builder.set_num_values(rows));
            change_row_group(&mut row_groups[0], |builder| builder.set_num_rows(rows));
        });
        assert_says(&reason(file).await, &format!("{rows} rows"));
    }
}

#[tokio::test]
async fn more_rows_than_the_listed_pages_can_hold() {
    // The column chunks could hold this number of rows, if their pages were not listed.
    let rows = 1 << 33;
    let file = with_footer(&sound(), |row_groups| {
        change_columns(&mut row_groups[0], |_, builder| builder.set_num_values(rows));
        change_row_group(&mut row_groups[0], |builder| builder.set_num_rows(rows));
    });
    let table = try_open(&[file], options(100)).await.unwrap();
    assert_eq!(table.layout().chunk_count(), 1 + 10, "the first row group is not split");
}

#[tokio::test]
async fn more_rows_than_sums_over_files_can_count() {
    let file = with_footer(&write(&[rows(0..40)], row_groups(10)), |row_groups| {
        for row_group in row_groups {
            change_columns(row_group, |_, builder| builder.set_num_values(1 << 60));
            change_row_group(row_group, |builder| builder.set_num_rows(1 << 60));
        }
    });
    assert_says(&reason(file).await, "rows");
}

#[tokio::test]
async fn a_row_group_without_rows_whose_columns_lie_nowhere() {
    for (offset, bytes) in [(-5, 10), (4, -10), (i64::MAX, 1 << 62), (1 << 40, 10)] {
        let file = with_footer(&sound(), |row_groups| {
            change_row_group(&mut row_groups[0], |builder| builder.set_num_rows(0));
            change_columns(&mut row_groups[0], |column, builder| {
                if column.column_path().string() != "key" {
                    return builder;
                }
                let builder = builder.set_data_page_offset(offset);
                builder.set_dictionary_page_offset(None).set_total_compressed_size(bytes)
            });
        });
        assert_says(&reason(file).await, "row group 0 would lie outside the file");
    }
}

#[tokio::test]
async fn column_chunks_that_overlap_are_read_each_on_its_own() {
    let file = with_footer(&sound(), |row_groups| {
        let first = row_groups[0].column(0).clone();
        let start = first.dictionary_page_offset().unwrap_or(first.data_page_offset());
        change_columns(&mut row_groups[0], |_, builder| {
            builder.set_data_page_offset(start).set_dictionary_page_offset(None)
        });
    });
    let table = try_open(&[file], options(100)).await.unwrap();
    let pages: Vec<_> =
        (0..table.layout().page_count() as u32).map(coscan_core::PageIndex).collect();
    assert!(table.requests(&pages, u64::MAX).len() > 1);
}

// -- lists and the schema, in Thrift

/// `FileMetaData` up to its row groups, with a root of `children` children, followed by `columns` columns.
fn metadata_start(children: u64, columns: u64) -> Vec<u8> {
    let mut bytes = vec![0x15, 2]; // version
    bytes.extend([0x19, 0xfc]); // a list of structs: the schema
    bytes.extend(number(1 + columns));
    bytes.extend([0x48, 1, b'r', 0x15]);
    bytes.extend(number(2 * children));
    bytes.push(0);
    for _ in 0..columns {
        bytes.extend([0x15, 2, 0x25, 0, 0x18, 1, b'c', 0]); // a required INT32
    }
    bytes.extend([0x16, 0]); // rows
    bytes
}

/// A number in LEB128.
fn number(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A file that is only a footer.
fn file_of(footer: &[u8]) -> Bytes {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1".as_slice(), footer, &length, b"PAR1"].concat().into()
}

#[tokio::test]
async fn a_list_of_two_billion_row_groups() {
    let mut footer = metadata_start(1, 1);
    footer.extend([0x19, 0xfc]);
    footer.extend(number(i32::MAX as u64));
    assert_says(&reason(file_of(&footer)).await, "its footer cannot be understood");
}

#[tokio::test]
async fn a_schema_of_two_billion_columns() {
    let mut footer = metadata_start(i32::MAX as u64, 1);
    footer.extend([0x19, 0x0c, 0]);
    assert_says(&reason(file_of(&footer)).await, "its footer cannot be understood");
}

#[tokio::test]
async fn a_schema_so_deep_that_its_readers_would_overflow_the_stack() {
    let depth = 20_000;
    let mut footer = vec![0x15, 2, 0x19, 0xfc];
    footer.extend(number(depth + 1));
    for _ in 0..depth {
        footer.extend([0x35, 0, 0x18, 1, b'g', 0x15, 2, 0]); // a required group of one
    }
    footer.extend([0x15, 2, 0x25, 0, 0x18, 1, b'c', 0, 0x16, 0, 0x19, 0x0c, 0]);
    assert_says(&reason(file_of(&footer)).await, "nested more than");
}

#[tokio::test]
async fn a_footer_longer_than_the_file() {
    let mut file = sound().to_vec();
    let length = file.len() - 8;
    file[length..length + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_says(&reason(file.into()).await, "larger than the file");
}

// -- the page index

#[tokio::test]
async fn a_list_of_two_billion_data_pages() {
    let sound = sound();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&sound).unwrap();
    let start = metadata.row_group(0).column(0).offset_index_offset().unwrap() as usize;
    let mut file = sound.to_vec();
    assert_eq!(file[start] & 0x0f, 9, "a list");
    let header = [&[0xfc][..], &number(i32::MAX as u64)].concat();
    file[start + 1..start + 1 + header.len()].copy_from_slice(&header);
    // Only the page index is damaged: row groups are read whole.
    let table = try_open(&[file.into()], options(100)).await.unwrap();
    assert_eq!(table.layout().chunk_count(), 2);
}

#[tokio::test]
async fn a_page_index_that_is_scattered_over_the_file() {
    assert_says(&reason(with_index_at(30 << 20)).await, "its page index is scattered");
    for nowhere in [50 << 20, i64::MAX] {
        assert_says(&reason(with_index_at(nowhere)).await, "its page index would lie outside");
    }
}

/// A file of 40 MiB in which the list of pages of one column is elsewhere.
fn with_index_at(offset: i64) -> Bytes {
    let sound = sound();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&sound).unwrap();
    let mut builder = metadata.into_builder();
    let mut row_groups = builder.take_row_groups();
    change_columns(&mut row_groups[0], |column, builder| match column.column_path().string() {
        path if path == "key" => builder.set_offset_index_offset(Some(offset)),
        _ => builder,
    });
    rewrite(&[&sound[..], &vec![0; 40 << 20]].concat(), &builder.set_row_groups(row_groups).build())
}
