//! The rows at which keys begin in a table that is sorted by them, as a join index summary gives them [CS11 §2.6.2].

use std::ops::Range;

use arrow::row::{OwnedRow, Row, RowConverter, Rows, SortField};
use arrow_array::{Array, ArrayRef};
use arrow_schema::SortOptions;
use coscan_core::Order;
#[cfg(doc)]
use coscan_storage::table::ParquetFile;
use coscan_storage::table::{ChunkStatistics, ParquetTable};
use futures::TryStreamExt;

use crate::error::ScanError;
use crate::manager::BufferManager;
use crate::scans::request::{ScanLabel, ScanRequest};
use crate::tables::table::SharedTable;

/// Finds for each key the first row of a table whose key is not before it; the number of rows of the table if all are.
/// The table is sorted by `column` as `options` say, without NULLs. Keys may come in any order.
///
/// Statistics decide most of it. Only the row groups that they leave open are read, by a scan of the column, and their
/// rows are checked. The result is `None` if one is NULL or out of order, or if values of that type have no order; then
/// the table is not sorted as claimed. The file with a row out of order records that ([`ParquetFile::is_unordered`]),
/// so that it is not read again for the same answer.
///
/// # Errors
/// If the column does not exist, the keys have another type, or the scan fails.
pub async fn find_rows(
    manager: &BufferManager,
    table: &SharedTable,
    column: usize,
    options: SortOptions,
    keys: &ArrayRef,
    label: ScanLabel,
) -> Result<Option<Vec<u64>>, ScanError> {
    let parquet = table.table();
    let fields = parquet.schema().fields();
    let unknown = ScanError::UnknownColumn { column, columns: fields.len() };
    let data_type = fields.get(column).ok_or(unknown)?.data_type();
    if keys.data_type() != data_type {
        let (keys, column) = (keys.data_type().clone(), data_type.clone());
        return Err(ScanError::KeyType { keys, column });
    }
    let field = SortField::new_with_options(data_type.clone(), options);
    let Ok(converter) = RowConverter::new(vec![field]) else { return Ok(None) };
    let keys = convert(&converter, keys);
    let statistics = parquet.zone_statistics(column).ok();
    if statistics.as_ref().is_some_and(has_nulls) {
        return Ok(None);
    }
    let zones = Zones::new(&converter, parquet.zones(), statistics.as_ref(), options.descending);
    let keys: Vec<_> = keys.iter().collect();
    let open: Vec<_> = keys.iter().map(|key| zones.open_for(*key)).collect();
    // The first row after the open zones, unless an earlier one is found.
    let mut found: Vec<_> = open.iter().map(|open| zones.first_row(open.end)).collect();
    let mut pending: Vec<_> = (0..keys.len()).filter(|&key| !open[key].is_empty()).collect();
    pending.sort_unstable_by_key(|&key| keys[key]);
    let rows = zones.rows_of(&open);
    if rows.is_empty() {
        return Ok(Some(found));
    }
    let sorted = SortedFiles { table: parquet, column, is_descending: options.descending };
    if sorted.has_unordered(&rows) {
        return Ok(None);
    }
    let request = ScanRequest {
        rows: rows.clone(),
        order: Order::InOrder,
        label,
        ..ScanRequest::of_columns(table, vec![column])
    };
    let mut batches = manager.start_scan(table, request)?.worker(0);
    let mut pending = pending.into_iter().peekable();
    let (mut rows_read, mut last): (u64, Option<OwnedRow>) = (0, None);
    while let Some(batch) = batches.try_next().await? {
        let read = batch.column(0);
        let has_nulls = read.logical_null_count() > 0;
        let read = convert(&converter, read);
        let read: Vec<_> = read.iter().collect();
        let (Some(first), Some(end)) = (read.first(), read.last()) else { continue };
        let is_after = last.is_some_and(|last| last.row() > *first);
        if has_nulls || is_after || !read.is_sorted() {
            sorted.note_unordered(nth_row(&rows, rows_read)); // All rows of a batch are of one file.
            return Ok(None);
        }
        last = Some(end.owned());
        while let Some(&key) = pending.peek() {
            let before = read.partition_point(|row| *row < keys[key]);
            if before == read.len() {
                break; // Of this key and all after it.
            }
            found[key] = found[key].min(nth_row(&rows, rows_read + before as u64));
            pending.next();
        }
        rows_read += read.len() as u64;
    }
    Ok(Some(found))
}

/// The files of a table that should be sorted by a column.
struct SortedFiles<'a> {
    table: &'a ParquetTable,
    column: usize,
    is_descending: bool,
}

impl SortedFiles<'_> {
    /// Whether a file with any of these rows was found not to be sorted.
    fn has_unordered(&self, rows: &[Range<u64>]) -> bool {
        let chunks = rows.iter().flat_map(|rows| self.table.layout().chunks_in(rows.clone()));
        let mut files: Vec<_> = chunks.map(|chunk| self.table.chunk_file(chunk)).collect();
        files.dedup();
        files.into_iter().any(|file| self.table.is_unordered(file, self.column, self.is_descending))
    }

    /// Records that the file of a row is not sorted.
    fn note_unordered(&self, row: u64) {
        let chunk = self.table.layout().chunks_in(row..row + 1).next();
        let file = chunk.map(|chunk| self.table.chunk_file(chunk));
        if let Some(file) = file
            && let Some(column) = self.table.file_column(file, self.column)
        {
            self.table.parquet_files()[file].note_unordered(column, self.is_descending);
        }
    }
}

fn has_nulls(statistics: &ChunkStatistics) -> bool {
    statistics.null_count.iter().flatten().any(|count| count > 0)
}

/// Values in a form that compares in the order of the table.
fn convert(converter: &RowConverter, values: &ArrayRef) -> Rows {
    let converted = converter.convert_columns(std::slice::from_ref(values));
    converted.expect("the values have the type that the converter was made for")
}

/// The row at a position among those of some ranges.
fn nth_row(ranges: &[Range<u64>], mut position: u64) -> u64 {
    for range in ranges {
        let rows = range.end - range.start;
        if position < rows {
            return range.start + position;
        }
        position -= rows;
    }
    ranges.last().map_or(0, |range| range.end)
}

/// The zones of a table, and bounds of the keys in them from statistics.
struct Zones<'a> {
    rows: &'a [Range<u64>],
    /// For each zone, a bound that no key up to the zone's end is after; `None` if there is none.
    highest: Vec<Option<OwnedRow>>,
    /// For each zone, a bound that no key from the zone's start on is before.
    lowest: Vec<Option<OwnedRow>>,
}

impl<'a> Zones<'a> {
    fn new(
        converter: &RowConverter,
        rows: &'a [Range<u64>],
        statistics: Option<&ChunkStatistics>,
        is_descending: bool,
    ) -> Self {
        // Bounds ignore NaN.
        let statistics = statistics.filter(|known| !known.min.data_type().is_floating());
        let Some(ChunkStatistics { min, max, .. }) = statistics else {
            let unknown = vec![None; rows.len()];
            return Self { rows, highest: unknown.clone(), lowest: unknown };
        };
        let (first, last) = if is_descending { (max, min) } else { (min, max) };
        let bounds = |bounds: &ArrayRef| -> Vec<Option<OwnedRow>> {
            let converted = convert(converter, bounds);
            let bound = |zone| bounds.is_valid(zone).then(|| converted.row(zone).owned());
            (0..rows.len()).map(bound).collect()
        };
        let (mut highest, mut lowest) = (bounds(last), bounds(first));
        for zone in 1..rows.len() {
            let both = highest[zone - 1].clone().zip(highest[zone].take());
            highest[zone] = both.map(|(before, own)| before.max(own));
        }
        for zone in (1..rows.len()).rev() {
            let both = lowest[zone].clone().zip(lowest[zone - 1].take());
            lowest[zone - 1] = both.map(|(after, own)| after.min(own));
        }
        Self { rows, highest, lowest }
    }

    /// The zones that may hold the first row of a key: all keys in zones before them are before `key`, and none in
    /// zones after them is. One may begin with keys before it and end with others. There are hardly ever two.
    fn open_for(&self, key: Row<'_>) -> Range<usize> {
        let is_before =
            |bound: &Option<OwnedRow>| bound.as_ref().is_some_and(|bound| bound.row() < key);
        let may_be_before =
            |bound: &Option<OwnedRow>| bound.as_ref().is_none_or(|bound| bound.row() < key);
        let start = self.highest.partition_point(is_before);
        start..self.lowest.partition_point(may_be_before).max(start)
    }

    /// The first row of a zone, or the end of the table.
    fn first_row(&self, zone: usize) -> u64 {
        let end = || self.rows.last().map_or(0, |rows| rows.end);
        self.rows.get(zone).map_or_else(end, |rows| rows.start)
    }

    /// The rows of some zones, as ascending ranges that do not touch.
    fn rows_of(&self, zones: &[Range<usize>]) -> Vec<Range<u64>> {
        let mut zones: Vec<_> = zones.iter().filter(|zones| !zones.is_empty()).cloned().collect();
        zones.sort_unstable_by_key(|zones| zones.start);
        let mut all: Vec<Range<u64>> = Vec::new();
        for zones in zones {
            let (start, end) = (self.first_row(zones.start), self.first_row(zones.end));
            match all.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => all.push(start..end),
            }
        }
        all
    }
}
