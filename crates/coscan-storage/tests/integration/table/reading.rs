//! Reading pages: requests, and files that have changed.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex};
use coscan_storage::table::{
    DecodeError, FileOptions, PageLayout, ParquetTable, ReadError, TableFile,
};
use futures::StreamExt;
use futures::stream::BoxStream;
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

/// A fault that is applied to the result of a request for a range.
type Fault = Box<dyn Fn(Range<u64>, GetResult) -> Result<GetResult> + Send + Sync>;

/// A store that records all ranges asked for and may spoil the answers.
struct Recorder {
    inner: Arc<dyn ObjectStore>,
    requests: Mutex<Vec<GetOptions>>,
    fault: Mutex<Option<Fault>>,
}

impl Recorder {
    async fn table(file: Bytes, options: FileOptions) -> (Arc<Self>, ParquetTable) {
        let (inner, mut files) = store(&[file]).await;
        let recorder =
            Arc::new(Self { inner, requests: Mutex::default(), fault: Mutex::default() });
        files[0].store = Arc::clone(&recorder) as _;
        let table = ParquetTable::open(files, options).await.unwrap();
        recorder.requests.lock().unwrap().clear();
        (recorder, table)
    }

    fn ranges(&self) -> Vec<Range<u64>> {
        let range = |options: &GetOptions| match options.range.clone() {
            Some(GetRange::Bounded(range)) => range,
            other => panic!("{other:?}"),
        };
        self.requests.lock().unwrap().iter().map(range).collect()
    }

    fn set_fault(
        &self,
        fault: impl Fn(Range<u64>, GetResult) -> Result<GetResult> + Send + Sync + 'static,
    ) {
        *self.fault.lock().unwrap() = Some(Box::new(fault));
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

impl fmt::Display for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}

#[async_trait]
impl ObjectStore for Recorder {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }
    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.requests.lock().unwrap().push(options.clone());
        let result = self.inner.get_opts(location, options).await?;
        match &*self.fault.lock().unwrap() {
            Some(fault) => fault(result.range.clone(), result),
            None => Ok(result),
        }
    }
    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn neighbours_are_read_in_one_request_and_each_on_condition() {
    let file = write(&[rows(0..300)], row_groups(100));
    let (recorder, table) = Recorder::table(file.clone(), options(100)).await;
    let found = read_pages(&table, &all_pages(&table)).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(recorder.ranges().len(), 1, "{:?}", recorder.ranges());
    assert!(recorder.requests.lock().unwrap()[0].if_match.is_some());
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
    let (recorder, table) = Recorder::table(write(&[batch], properties), options(65_536)).await;
    let asked = [PageIndex(2), PageIndex(0), PageIndex(2)];
    let found = read_pages(&table, &asked).await;
    assert_eq!(recorder.ranges().len(), 2);
    let sizes: Vec<_> = found.iter().map(|bytes| bytes.as_ref().unwrap().len() as u64).collect();
    assert_eq!(sizes, asked.map(|page| table.layout().bytes_of(page)));
    assert_eq!(found[0].as_ref().unwrap(), found[2].as_ref().unwrap());
    assert_ne!(found[0].as_ref().unwrap(), found[1].as_ref().unwrap());

    // One request fails: only its pages do.
    let last = recorder.ranges().into_iter().max_by_key(|range| range.start).unwrap();
    recorder.set_fault(move |range, result| match range == last {
        true => Err(Error::Generic { store: "Recorder", source: "on purpose".into() }),
        false => Ok(result),
    });
    let found = read_pages(&table, &[PageIndex(0), PageIndex(2)]).await;
    assert!(found[0].is_ok());
    let error = found[1].as_ref().unwrap_err();
    assert!(matches!(error, ReadError::Store { .. }) && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("on purpose"), "{error}");
}

#[tokio::test]
async fn a_short_body_is_truncated() {
    let (recorder, table) =
        Recorder::table(write(&[rows(0..100)], row_groups(100)), options(100)).await;
    for cut_range in [false, true] {
        recorder.set_fault(move |range, mut result| {
            let half = (range.end - range.start) / 2;
            if cut_range {
                result.range.end = range.start + half;
            }
            let bytes = Bytes::from(vec![0; half as usize]);
            result.payload = GetResultPayload::Stream(futures::stream::iter([Ok(bytes)]).boxed());
            Ok(result)
        });
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
    let (recorder, table) =
        Recorder::table(write(&[rows(0..100)], row_groups(100)), options(100)).await;
    let changes: [fn(&mut ObjectMeta); 3] = [
        |meta| meta.size += 1,
        |meta| meta.e_tag = Some("another".to_owned()),
        |meta| {
            meta.e_tag = None;
            meta.last_modified += std::time::Duration::from_secs(5);
        },
    ];
    for change in changes {
        recorder.set_fault(move |_, mut result| {
            change(&mut result.meta);
            Ok(result)
        });
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
