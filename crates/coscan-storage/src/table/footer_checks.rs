//! The checks of a footer before anything relies on it. One damaged byte may name 2^60 rows, or a list of 2^31 elements
//! for which parquet would take memory at once. No allocation here depends on values in a footer.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::TableError;
use super::row_ranges::PAGE_ROWS_MAX;
use super::thrift::{self, LIST, Reader, STRUCT};

/// The field of `FileMetaData` that is the schema, as a list of its elements in depth-first order.
const SCHEMA: i16 = 2;
/// The field of `FileMetaData` that describes the encryption of columns.
const ENCRYPTION_ALGORITHM: i16 = 8;
/// The field of `SchemaElement` that has the number of its children.
const CHILD_COUNT: i16 = 5;
/// The greatest depth of a schema, whose readers recurse.
const DEPTH_MAX: usize = 128;

/// The most rows of a file, so that sums over many files are exact.
const ROWS_MAX: u64 = 1 << 48;
/// The size of the smallest data page: its header has seven fields, of one or two bytes each.
const PAGE_BYTES_MIN: u64 = 8;

/// The largest gap between page indexes, which follow each other. If they are further apart than this, and than they
/// are long, they are damaged.
const INDEX_GAPS_BYTES_MAX: u64 = 16 << 20;

/// The shape of a footer whose bytes are whole.
pub(super) struct FooterShape {
    pub(super) is_encrypted: bool,
}

impl FooterShape {
    /// # Errors
    /// If the bytes are not Thrift, are cut off, or name more elements or deeper ones than parquet's parser should be
    /// trusted with.
    pub(super) fn of(footer: &[u8]) -> Result<Self, String> {
        let cut_off = || "it is cut off, or not Thrift".to_owned();
        let mut reader = Reader::new(footer);
        let mut shape = Self { is_encrypted: false };
        let mut id = 0;
        while let Some((next, kind)) = reader.field(id).ok_or_else(cut_off)? {
            match (next, kind) {
                (SCHEMA, LIST) => check_schema(&mut reader).ok_or_else(cut_off)??,
                (ENCRYPTION_ALGORITHM, _) => {
                    shape.is_encrypted = true;
                    return Ok(shape);
                }
                _ => reader.skip(kind).ok_or_else(cut_off)?,
            }
            id = next;
        }
        Ok(shape)
    }
}

/// Checks that no element of the schema has more children than there are elements, and none is nested too deep. `None`
/// if it is cut off.
fn check_schema(reader: &mut Reader<'_>) -> Option<Result<(), String>> {
    let (kind, count) = reader.list()?;
    if kind != STRUCT {
        return None;
    }
    // The children to come of each element on the way to this one.
    let mut open: Vec<u64> = Vec::new();
    for _ in 0..count {
        while open.pop_if(|left| *left == 0).is_some() {}
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        let children = reader.count_of(CHILD_COUNT)?;
        let children = children.unwrap_or(0);
        if children > count {
            let text = format!("an element of its schema has {children} children");
            return Some(Err(format!("{text}, but there are only {count} elements")));
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > DEPTH_MAX {
            return Some(Err(format!("its schema is nested more than {DEPTH_MAX} levels deep")));
        }
    }
    Some(Ok(()))
}

/// Checks that all column chunks lie in the file, one for each leaf of the schema, and can hold the rows of their row
/// group.
pub(super) fn check(
    metadata: &ParquetMetaData,
    name: &Arc<str>,
    file_bytes: u64,
) -> Result<(), TableError> {
    let corrupt = |reason| TableError::Corrupt { file: Arc::clone(name), reason };
    let leaf_count = metadata.file_metadata().schema_descr().num_columns();
    let mut all_rows = 0_u64;
    for (position, row_group) in metadata.row_groups().iter().enumerate() {
        let rows = row_group.num_rows();
        let in_file = u64::try_from(rows).ok().and_then(|rows| all_rows.checked_add(rows));
        match in_file.filter(|&rows| rows <= ROWS_MAX) {
            Some(rows) => all_rows = rows,
            None => return Err(corrupt(format!("row group {position} has {rows} rows"))),
        }
        if row_group.num_columns() != leaf_count {
            let columns = row_group.num_columns();
            let reason = format!("row group {position} has {columns} of {leaf_count} columns");
            return Err(corrupt(reason));
        }
        for column in row_group.columns() {
            if let Some(other) = column.file_path() {
                let path = column.column_path();
                let reason = format!("the values of column `{path}` are in another file, {other}");
                return Err(TableError::Unsupported { file: Arc::clone(name), reason });
            }
            check_column(row_group, column, file_bytes).map_err(|reason| {
                let path = column.column_path();
                corrupt(format!("column `{path}` of row group {position} {reason}"))
            })?;
        }
    }
    Ok(())
}

fn check_column(
    row_group: &RowGroupMetaData,
    column: &ColumnChunkMetaData,
    file_bytes: u64,
) -> Result<(), String> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let bytes = column.compressed_size();
    let end = start.checked_add(bytes).and_then(|end| u64::try_from(end).ok());
    if start < 0 || bytes < 0 || end.is_none_or(|end| end > file_bytes) {
        return Err("would lie outside the file".to_owned());
    }
    let rows = row_group.num_rows();
    let values = column.num_values();
    if values < rows {
        return Err(format!("has {values} values, fewer than the {rows} rows"));
    }
    // Full data pages of the smallest size fill the bytes.
    let rows_max = (bytes.cast_unsigned() / PAGE_BYTES_MIN).saturating_mul(PAGE_ROWS_MAX);
    if rows.cast_unsigned() > rows_max {
        return Err(format!("has {bytes} bytes, too few for {rows} rows"));
    }
    Ok(())
}

/// The range of the file that has the page index; `None` if there is none.
///
/// # Errors
/// If parts of it lie outside the file, or are scattered over it, since they would be read in one piece.
pub(super) fn page_index_range(
    metadata: &ParquetMetaData,
    file_bytes: u64,
) -> Result<Option<Range<u64>>, String> {
    let mut all: Option<Range<u64>> = None;
    let mut parts_bytes = 0_u64;
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        for part in [column_index(column), offset_index(column)].into_iter().flatten() {
            if part.end > file_bytes {
                return Err("its page index would lie outside the file".to_owned());
            }
            parts_bytes = parts_bytes.saturating_add(part.end - part.start);
            all = Some(match all {
                Some(all) => all.start.min(part.start)..all.end.max(part.end),
                None => part,
            });
        }
    }
    let is_scattered = |all: &Range<u64>| {
        let gaps_bytes = (all.end - all.start).saturating_sub(parts_bytes);
        gaps_bytes > parts_bytes.max(INDEX_GAPS_BYTES_MAX)
    };
    match all {
        Some(all) if is_scattered(&all) => Err("its page index is scattered over it".to_owned()),
        all => Ok(all),
    }
}

/// The range of a part of the page index, as parquet understands its fields: both are there, and neither is negative.
fn index_range(offset: Option<i64>, length: Option<i32>) -> Option<Range<u64>> {
    let (offset, length) = (u64::try_from(offset?).ok()?, u64::try_from(length?).ok()?);
    Some(offset..offset + length)
}

fn column_index(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    index_range(column.column_index_offset(), column.column_index_length())
}

fn offset_index(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    index_range(column.offset_index_offset(), column.offset_index_length())
}

/// Whether the lists of data pages are whole, in a page index that starts at an offset of the file. Parquet takes
/// memory for all elements that a list names.
pub(super) fn lists_are_whole(metadata: &ParquetMetaData, index: &(u64, Bytes)) -> bool {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let mut ranges = columns.filter_map(offset_index);
    ranges.all(|range| {
        part_of(index.0, &index.1, &range).is_some_and(|bytes| thrift::is_struct(&bytes))
    })
}

/// A range of a file from bytes that start at an offset of it.
pub(super) fn part_of(start: u64, bytes: &Bytes, range: &Range<u64>) -> Option<Bytes> {
    let offset = |position: u64| usize::try_from(position.checked_sub(start)?).ok();
    let (start, end) = (offset(range.start)?, offset(range.end)?);
    (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
}
