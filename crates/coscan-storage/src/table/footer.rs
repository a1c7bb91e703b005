//! Reads and checks the footer of one file, with its page index.
//!
//! Everything that later code relies on is checked here: a bad footer is an error at opening, not a panic at reading.
//!
//! Source: Parquet format, "File format" and `FileMetaData` in `parquet.thrift`.

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

use super::read::read_range;
use super::{ReadError, TableError, TableFile, thrift};

/// The first read, from the end of the file: footers and most page indexes fit in.
const TAIL_BYTES: u64 = 128 * 1024;
/// Magic, footer length, magic.
const FILE_BYTES_MIN: u64 = 12;
const MAGIC: &[u8] = b"PAR1";
const MAGIC_ENCRYPTED: &[u8] = b"PARE";
/// The field of `FileMetaData` that says how columns are encrypted.
const ENCRYPTION_ALGORITHM: i16 = 8;

/// Reads the footer of a file, unchecked.
pub(super) async fn read(
    file: &TableFile,
    name: &Arc<str>,
) -> Result<Arc<ParquetMetaData>, TableError> {
    let file_bytes = file.meta.size;
    if file_bytes < FILE_BYTES_MIN {
        let reason = format!("it has {file_bytes} bytes, too few to be one");
        return Err(TableError::NotParquet { file: Arc::clone(name), reason });
    }
    let tail_start = file_bytes.saturating_sub(TAIL_BYTES);
    let tail = read_range(file, name, tail_start..file_bytes).await?;
    if tail.ends_with(MAGIC_ENCRYPTED) {
        return Err(TableError::Encrypted { file: Arc::clone(name) });
    }
    if !tail.ends_with(MAGIC) {
        let reason = "it does not end in PAR1; perhaps it was not written to the end".to_owned();
        return Err(TableError::NotParquet { file: Arc::clone(name), reason });
    }

    if says_encrypted(&tail) {
        return Err(TableError::Encrypted { file: Arc::clone(name) });
    }

    let corrupt = |reason| TableError::Corrupt { file: Arc::clone(name), reason };
    let reader = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Optional)
        .with_prefetch_hint(usize::try_from(TAIL_BYTES).ok());
    let fetch = Footer { file, name, tail_start, tail };
    let metadata = AssertUnwindSafe(reader.load_and_finish(fetch, file_bytes)).catch_unwind().await;
    let metadata = metadata.map_err(|_| corrupt("its footer cannot be understood".to_owned()))?;
    let metadata = metadata.map_err(|error| match into_read_error(error) {
        Ok(error) => TableError::Read(error),
        Err(reason) => corrupt(format!("its footer cannot be understood ({reason})")),
    })?;
    Ok(Arc::new(metadata))
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

/// Whether the footer comes with the page index that the file has: chunks are cut along it.
pub(super) fn is_whole(metadata: &ParquetMetaData) -> bool {
    let has = |part: fn(&ColumnChunkMetaData) -> Option<i64>| {
        let mut columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        columns.any(|column| part(column).is_some())
    };
    (metadata.offset_index().is_some() || !has(ColumnChunkMetaData::offset_index_offset))
        && (metadata.column_index().is_some() || !has(ColumnChunkMetaData::column_index_offset))
}

/// Whether the footer says that columns are encrypted. False if it is not all in the tail.
fn says_encrypted(tail: &[u8]) -> bool {
    let footer = || {
        let (rest, length) = tail.strip_suffix(MAGIC)?.split_last_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        thrift::has_field(&rest[rest.len().checked_sub(length)?..], ENCRYPTION_ALGORITHM)
    };
    footer().unwrap_or(false)
}

/// Serves parquet from the tail, and from the file where the tail is too short.
struct Footer<'a> {
    file: &'a TableFile,
    name: &'a Arc<str>,
    tail_start: u64,
    tail: Bytes,
}

impl MetadataFetch for Footer<'_> {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            if range.end > self.file.meta.size || range.start > range.end {
                let (start, end) = (range.start, range.end);
                return Err(ParquetError::EOF(format!(
                    "it refers to bytes {start}..{end} of itself"
                )));
            }
            if range.start >= self.tail_start {
                let start = usize::try_from(range.start - self.tail_start)?;
                let end = usize::try_from(range.end - self.tail_start)?;
                return Ok(self.tail.slice(start..end));
            }
            let read = read_range(self.file, self.name, range).await;
            read.map_err(|error| ParquetError::External(Box::new(error)))
        }
        .boxed()
    }
}

fn into_read_error(error: ParquetError) -> Result<ReadError, String> {
    match error {
        ParquetError::External(error) => match error.downcast::<ReadError>() {
            Ok(error) => Ok(*error),
            Err(error) => Err(error.to_string()),
        },
        error => Err(error.to_string()),
    }
}

/// Some writers express "no dictionary" as offset 0, where parquet would look for one.
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

/// Checks that all column chunks lie in the file, one for each leaf of the schema.
fn check(metadata: &ParquetMetaData, name: &Arc<str>, file_bytes: u64) -> Result<(), TableError> {
    let corrupt = |reason| Err(TableError::Corrupt { file: Arc::clone(name), reason });
    let leaf_count = metadata.file_metadata().schema_descr().num_columns();
    for (position, row_group) in metadata.row_groups().iter().enumerate() {
        if row_group.num_rows() < 0 {
            return corrupt(format!("row group {position} has {} rows", row_group.num_rows()));
        }
        if row_group.num_columns() != leaf_count {
            let columns = row_group.num_columns();
            return corrupt(format!("row group {position} has {columns} of {leaf_count} columns"));
        }
        for column in row_group.columns() {
            let path = column.column_path();
            if let Some(other) = column.file_path() {
                let reason = format!("the values of column `{path}` are in another file, {other}");
                return Err(TableError::Unsupported { file: Arc::clone(name), reason });
            }
            let start =
                column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let end = start.checked_add(column.compressed_size());
            let lies_inside = start >= 0
                && column.compressed_size() >= 0
                && end.is_some_and(|end| end.cast_unsigned() <= file_bytes);
            if !lies_inside && row_group.num_rows() > 0 {
                let reason =
                    format!("column `{path}` of row group {position} would lie outside the file");
                return corrupt(reason);
            }
        }
    }
    Ok(())
}
