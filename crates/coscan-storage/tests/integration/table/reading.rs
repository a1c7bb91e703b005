//! Reading pages: requests, and files that have changed.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex};
use coscan_storage::table::{
    DecodeError, FileOptions, PageLayout, ParquetTable, ReadError, TableFile,
};
use coscan_testing::{Fate, Faults};
use futures::StreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::*;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use url::Url;

use crate::table::support::{
    assert_decodes_as_reference, decode, open, options, read_pages, row_groups, rows, small_pages,
    store, write,
};

fn all_pages(table: &ParquetTable) -> Vec<PageIndex> {
    (0..table.layout().page_count() as u32).map(PageIndex).collect()
}

/// A table of a file, and the faults in reading it.
async fn table_with_faults(file: Bytes, options: FileOptions) -> (Faults, ParquetTable) {
    let (inner, mut files) = store(&[file]).await;
    let faults = Faults::default();
    files[0].store = faults.around(inner);
    let table = ParquetTable::open(files, options).await.unwrap();
    faults.take_reads();
    (faults, table)
}

#[tokio::test]
async fn neighbours_are_read_in_one_request_and_each_on_condition() {
    let file = write(&[rows(0..300)], row_groups(100));
    let (faults, table) = table_with_faults(file.clone(), options(100)).await;
    let found = read_pages(&table, &all_pages(&table)).await;
    assert!(found.iter().all(Result::is_ok));
    let reads = faults.take_reads();
    assert_eq!(reads.len(), 1, "{reads:?}");
    assert!(reads[0].if_match.is_some());
}

#[tokio::test]
async fn distant_pages_are_read_apart_and_come_in_the_order_asked_for() {
    // Keys of 8 bytes without compression or dictionary take half a megabyte per row group.
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(65_536))
        .build();
    let keys = arrow_array::Int64Array::from_iter_values(0..3 * 65_536);
    let batch = arrow_array::RecordBatch::try_from_iter([("key", Arc::new(keys) as _)]).unwrap();
    let file = write(&[batch], properties);
    let (faults, table) = table_with_faults(file, options(65_536)).await;
    let asked = [PageIndex(2), PageIndex(0), PageIndex(2)];
    let found = read_pages(&table, &asked).await;
    let range = |read: GetOptions| match read.range {
        Some(GetRange::Bounded(range)) => range,
        other => panic!("{other:?}"),
    };
    let ranges: Vec<_> = faults.take_reads().into_iter().map(range).collect();
    assert_eq!(ranges.len(), 2);
    let sizes: Vec<_> = found.iter().map(|bytes| bytes.as_ref().unwrap().len() as u64).collect();
    assert_eq!(sizes, asked.map(|page| table.layout().bytes_of(page)));
    assert_eq!(found[0].as_ref().unwrap(), found[2].as_ref().unwrap());
    assert_ne!(found[0].as_ref().unwrap(), found[1].as_ref().unwrap());

    // One request fails: only its pages do.
    let last = ranges.into_iter().max_by_key(|range| range.start).unwrap();
    faults.judge(move |range| if *range == last { Fate::Fail } else { Fate::Answer });
    let found = read_pages(&table, &[PageIndex(0), PageIndex(2)]).await;
    assert!(found[0].is_ok());
    let error = found[1].as_ref().unwrap_err();
    assert!(matches!(error, ReadError::Store { .. }) && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("on purpose"), "{error}");
}

fn zeroes(bytes: u64) -> GetResultPayload {
    let bytes = Bytes::from(vec![0; bytes as usize]);
    GetResultPayload::Stream(futures::stream::iter([Ok(bytes)]).boxed())
}

#[tokio::test]
async fn a_short_body_is_truncated() {
    let file = write(&[rows(0..100)], row_groups(100));
    let (faults, table) = table_with_faults(file, options(100)).await;
    let short_bodies: [fn(&mut GetResult); 2] = [
        |result| result.payload = zeroes((result.range.end - result.range.start) / 2),
        |result| {
            result.range.end -= (result.range.end - result.range.start) / 2;
            result.payload = zeroes(result.range.end - result.range.start);
        },
    ];
    for short_body in short_bodies {
        faults.all(Fate::Changed(short_body));
        let found = read_pages(&table, &[PageIndex(0), PageIndex(1)]).await;
        for error in found.into_iter().map(Result::unwrap_err) {
            assert!(
                matches!(error, ReadError::Truncated { .. }) && error.is_retryable(),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_changed_or_missing_file_is_never_read() {
    let file = write(&[rows(0..100)], row_groups(100));
    let (memory, files) = store(std::slice::from_ref(&file)).await;
    let path = files[0].meta.location.clone();
    let table = ParquetTable::open(files.clone(), options(100)).await.unwrap();
    files[0].check().await.unwrap();
    // The file has the same size, but other bytes.
    memory.put(&path, write(&[rows(0..100)], row_groups(100)).into()).await.unwrap();
    let error = read_pages(&table, &[PageIndex(0)]).await.remove(0).unwrap_err();
    assert!(matches!(error, ReadError::Changed { .. }) && !error.is_retryable());
    let text =
        "memory:///table/0.parquet has changed since the table was opened; open the table again";
    assert_eq!(error.to_string(), text);
    assert!(matches!(files[0].check().await, Err(ReadError::Changed { .. })));
    let error = ParquetTable::open(files.clone(), options(100)).await.unwrap_err();
    assert!(error.to_string().contains("has changed"), "{error}");
    memory.delete(&path).await.unwrap();
    assert!(matches!(files[0].check().await, Err(ReadError::Missing { .. })));
    let error = read_pages(&table, &[PageIndex(0)]).await.remove(0).unwrap_err();
    assert!(matches!(error, ReadError::Missing { .. }) && !error.is_retryable());
}

#[tokio::test]
async fn a_change_is_noticed_if_the_store_ignores_conditions() {
    let file = write(&[rows(0..100)], row_groups(100));
    let (faults, table) = table_with_faults(file, options(100)).await;
    let changes: [fn(&mut GetResult); 3] = [
        |result| result.meta.size += 1,
        |result| result.meta.e_tag = Some("another".to_owned()),
        |result| {
            result.meta.e_tag = None;
            result.meta.last_modified += std::time::Duration::from_secs(5);
        },
    ];
    for change in changes {
        faults.all(Fate::Changed(change));
        let error = read_pages(&table, &[PageIndex(0)]).await.remove(0).unwrap_err();
        assert!(matches!(error, ReadError::Changed { .. }), "{error}");
    }
}

#[tokio::test]
async fn local_files() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = write(&[rows(0..3000)], small_pages().build());
    std::fs::write(folder.path().join("a.parquet"), &bytes).unwrap();
    let local: Arc<dyn ObjectStore> =
        Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let meta = local.head(&Path::from("a.parquet")).await.unwrap();
    let file = TableFile { store: local, store_url: Url::parse("file:///").unwrap(), meta };
    for layout in [PageLayout::Column, PageLayout::Row] {
        let table_options = FileOptions { chunk_rows: 700, layout, ..FileOptions::default() };
        let table = ParquetTable::open(vec![file.clone()], table_options).await.unwrap();
        assert_decodes_as_reference(&table, std::slice::from_ref(&bytes)).await;
    }
    let table = ParquetTable::open(vec![file], options(700)).await.unwrap();
    std::fs::write(folder.path().join("a.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    let found = read_pages(&table, &all_pages(&table)).await;
    assert!(found.iter().all(|page| matches!(page, Err(ReadError::Changed { .. }))));
}

#[tokio::test]
async fn pages_do_not_share_memory() {
    let table = open(&[write(&[rows(0..100)], row_groups(100))], options(100)).await;
    let pages = read_pages(&table, &all_pages(&table)).await;
    let mut starts = HashSet::new();
    for page in pages {
        let page = page.unwrap();
        starts.insert(page.as_ptr());
        assert!(page.try_into_mut().is_ok(), "a page is the only owner of its bytes");
    }
    assert_eq!(starts.len(), table.layout().page_count());
}

/// A file of one required column of 32-bit integers in one uncompressed data page, whose header has this checksum.
fn file_with_checksum(values: &[i32], checksum: u32) -> Bytes {
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let varint = |value: i32, bytes: &mut Vec<u8>| {
        let mut zigzag = ((value << 1) ^ (value >> 31)).cast_unsigned();
        while zigzag >= 0x80 {
            bytes.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        bytes.push(zigzag as u8);
    };
    // PageHeader in Thrift's compact protocol: fields of 32-bit integers, then a struct of four more.
    let mut page = Vec::new();
    let (size, count) = (body.len() as i32, values.len() as i32);
    for value in [0, size, size, checksum.cast_signed()] {
        page.push(0x15);
        varint(value, &mut page);
    }
    page.push(0x1c);
    for value in [count, 0, 3, 3] {
        page.push(0x15);
        varint(value, &mut page);
    }
    page.extend([0, 0]);
    page.extend(body);

    let schema = Arc::new(parse_message_type("message m { REQUIRED INT32 a; }").unwrap());
    let descriptor = Arc::new(SchemaDescriptor::new(schema));
    let column = ColumnChunkMetaData::builder(descriptor.column(0))
        .set_num_values(i64::from(count))
        .set_total_compressed_size(page.len() as i64)
        .set_total_uncompressed_size(page.len() as i64)
        .set_data_page_offset(4)
        // Some writers express in this way that there is none.
        .set_dictionary_page_offset(Some(0))
        .build()
        .unwrap();
    let row_group = RowGroupMetaData::builder(Arc::clone(&descriptor))
        .set_num_rows(i64::from(count))
        .add_column_metadata(column)
        .build()
        .unwrap();
    let file_metadata = FileMetaData::new(1, i64::from(count), None, None, descriptor, None);
    let metadata = ParquetMetaData::new(file_metadata, vec![row_group]);
    let mut file = b"PAR1".to_vec();
    file.extend(page);
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().unwrap();
    file.into()
}

/// The CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[tokio::test]
async fn a_flipped_bit_does_not_pass_the_checksum() {
    let values = [1, 2, 3, 4, 5];
    let bytes: Vec<u8> = values.iter().flat_map(|value: &i32| value.to_le_bytes()).collect();
    let sound = file_with_checksum(&values, crc32(&bytes));
    let table = open(std::slice::from_ref(&sound), options(10)).await;
    assert_decodes_as_reference_with_false_dictionary(&table, &values).await;

    let damaged = file_with_checksum(&[1, 2, 3, 4, 4], crc32(&bytes));
    let table = open(&[damaged], options(10)).await;
    let pages = crate::table::support::read_all(&table).await;
    let error = decode(&table, &pages, ChunkIndex(0), 0, None, 10).unwrap_err();
    assert!(
        matches!(&error, DecodeError::Corrupt { reason, .. } if reason.contains("CRC")),
        "{error}"
    );
}

/// parquet's own reader cannot read a dictionary at offset 0, so the values are compared.
async fn assert_decodes_as_reference_with_false_dictionary(table: &ParquetTable, values: &[i32]) {
    let pages = crate::table::support::read_all(table).await;
    let found = decode(table, &pages, ChunkIndex(0), 0, None, 10).unwrap();
    assert_eq!(found.as_any().downcast_ref::<arrow_array::Int32Array>().unwrap().values(), values);
}
