//! Reads and checks the footer of one file, with its page index.
//!
//! Everything that later code relies on is checked here: a bad footer is an error at opening, not a panic at reading.
//!
//! Source: Parquet format, "File format" and `FileMetaData` in `parquet.thrift`.

use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::async_reader::MetadataFetch;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};

use super::footer_checks::{FooterShape, check, lists_are_whole, page_index_range, part_of};
use super::panics::caught;
use super::{MetadataReader, ReadError, TableError, TableFile};
use crate::stores::Device;

/// The size of the first read, from the end of the file. Footers and most page indexes fit in.
const TAIL_BYTES: u64 = 128 * 1024;
/// The smallest file: magic, footer length, magic.
const FILE_BYTES_MIN: u64 = 12;
const MAGIC: &[u8] = b"PAR1";
const MAGIC_ENCRYPTED: &[u8] = b"PARE";

/// Reads the footer of a file, unchecked.
pub(super) async fn read(
    file: &TableFile,
    device: &Device,
    name: &Arc<str>,
    reader: &dyn MetadataReader,
) -> Result<Arc<ParquetMetaData>, TableError> {
    let file_bytes = file.meta.size;
    if file_bytes < FILE_BYTES_MIN {
        let reason = format!("it has {file_bytes} bytes, too few to be one");
        return Err(TableError::NotParquet { file: Arc::clone(name), reason });
    }
    let tail_start = file_bytes.saturating_sub(TAIL_BYTES);
    let mut file_end = FileEnd {
        file,
        device,
        reader,
        start: tail_start,
        bytes: Bytes::new(),
        memory: Vec::new(),
    };
    let tail = file_end.read(tail_start..file_bytes).await?;
    file_end.bytes = tail.clone();
    if tail.ends_with(MAGIC_ENCRYPTED) {
        return Err(TableError::Encrypted { file: Arc::clone(name) });
    }
    if !tail.ends_with(MAGIC) {
        let reason = "it does not end in PAR1; perhaps it was not written to the end".to_owned();
        return Err(TableError::NotParquet { file: Arc::clone(name), reason });
    }

    let corrupt = |reason| TableError::Corrupt { file: Arc::clone(name), reason };
    let unreadable = |reason| corrupt(format!("its footer cannot be understood ({reason})"));
    let footer = footer_range(&tail, file_bytes)
        .ok_or_else(|| corrupt("its footer would be larger than the file".to_owned()))?;
    let bytes = file_end.read(footer).await?;
    let shape = FooterShape::of(&bytes).map_err(unreadable)?;
    if shape.is_encrypted {
        return Err(TableError::Encrypted { file: Arc::clone(name) });
    }
    let metadata = caught(|| ParquetMetaDataReader::decode_metadata(&bytes)).map_err(unreadable)?;
    let Some(index) = page_index_range(&metadata, file_bytes).map_err(corrupt)? else {
        return Ok(Arc::new(metadata));
    };
    let index = (index.start, file_end.read(index).await?);
    if !lists_are_whole(&metadata, &index) {
        log::warn!("the page index of {name} is damaged; its row groups are read whole");
        return Ok(Arc::new(metadata));
    }
    let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
        .with_page_index_policy(PageIndexPolicy::Optional);
    let loaded = AssertUnwindSafe(reader.load_page_index(PageIndex(index))).catch_unwind().await;
    let loaded =
        loaded.map_err(|_| unreadable("its page index makes the decoder panic".to_owned()))?;
    let metadata = loaded.and_then(|()| reader.finish());
    Ok(Arc::new(metadata.map_err(|error| unreadable(error.to_string()))?))
}

/// The footer of a file of `file_bytes` bytes, repaired where writers are known to be wrong, if later code can rely
/// on it.
pub(super) fn checked(
    metadata: Arc<ParquetMetaData>,
    name: &Arc<str>,
    file_bytes: u64,
) -> Result<Arc<ParquetMetaData>, TableError> {
    let metadata = without_false_dictionaries(metadata).map_err(|error| TableError::Corrupt {
        file: Arc::clone(name),
        reason: error.to_string(),
    })?;
    check(&metadata, name, file_bytes)?;
    Ok(metadata)
}

/// Whether the footer includes the page index that the file has. Chunks are cut along it.
pub(super) fn is_whole(metadata: &ParquetMetaData) -> bool {
    let has = |part: fn(&ColumnChunkMetaData) -> Option<i64>| {
        let mut columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        columns.any(|column| part(column).is_some())
    };
    (metadata.offset_index().is_some() || !has(ColumnChunkMetaData::offset_index_offset))
        && (metadata.column_index().is_some() || !has(ColumnChunkMetaData::column_index_offset))
}

/// The range of the footer proper, without its length and the magic after it; `None` if it is not in the file.
fn footer_range(tail: &[u8], file_bytes: u64) -> Option<Range<u64>> {
    let (_, length) = tail.strip_suffix(MAGIC)?.split_last_chunk()?;
    let end = file_bytes.checked_sub((MAGIC.len() + length.len()) as u64)?;
    Some(end.checked_sub(u32::from_le_bytes(*length).into())?..end)
}

/// The end of a file, as far as it has been read.
struct FileEnd<'a> {
    file: &'a TableFile,
    device: &'a Device,
    reader: &'a dyn MetadataReader,
    start: u64,
    bytes: Bytes,
    /// The memory reserved for all that was read.
    memory: Vec<Box<dyn Any + Send>>,
}

impl FileEnd<'_> {
    /// Reads a range of the file, from memory if it is there.
    async fn read(&mut self, range: Range<u64>) -> Result<Bytes, ReadError> {
        if let Some(bytes) = part_of(self.start, &self.bytes, &range) {
            return Ok(bytes);
        }
        self.memory.push(self.reader.reserve(self.file, range.end - range.start)?);
        self.reader.read(self.file, self.device, range).await
    }
}

/// Serves the page index, whose start and bytes these are, to parquet.
struct PageIndex((u64, Bytes));

impl MetadataFetch for PageIndex {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        let (start, bytes) = &self.0;
        let missing = || ParquetError::EOF(format!("it refers to bytes {range:?} of itself"));
        let found = part_of(*start, bytes, &range).ok_or_else(missing);
        std::future::ready(found).boxed()
    }
}

/// Removes false dictionary offsets. Some writers express "no dictionary" as offset 0, where parquet would look for
/// one.
fn without_false_dictionaries(
    metadata: Arc<ParquetMetaData>,
) -> Result<Arc<ParquetMetaData>, ParquetError> {
    let is_false = |column: &ColumnChunkMetaData| {
        column
            .dictionary_page_offset()
            .is_some_and(|offset| (0..MAGIC.len() as i64).contains(&offset))
    };
    if !metadata.row_groups().iter().any(|row_group| row_group.columns().iter().any(is_false)) {
        return Ok(metadata);
    }
    let repair_column = |column: ColumnChunkMetaData| match is_false(&column) {
        true => column.into_builder().set_dictionary_page_offset(None).build(),
        false => Ok(column),
    };
    let repair = |row_group: RowGroupMetaData| {
        let columns: Result<_, _> =
            row_group.columns().iter().cloned().map(repair_column).collect();
        row_group.into_builder().set_column_metadata(columns?).build()
    };
    let mut builder = Arc::unwrap_or_clone(metadata).into_builder();
    let row_groups: Result<_, _> = builder.take_row_groups().into_iter().map(repair).collect();
    Ok(Arc::new(builder.set_row_groups(row_groups?).build()))
}
