//! The rows of a table that a scan needs, chunk by chunk: all, some, or so few that only their pages are read.

use std::collections::BTreeMap;
use std::ops::Range;

use coscan_core::{ChunkIndex, GroupIndex, PageIndex};
use coscan_storage::table::ParquetTable;

use crate::error::ScanError;

/// Only the pages of the rows are read if they have less than one in this many of the bytes of their chunks. Whole
/// chunks are shared with other scans, single pages hardly ever.
const SPARSE_DIVISOR: u64 = 4;

/// Checks that ranges of rows ascend without overlap.
pub(crate) fn check_rows(rows: &[Range<u64>]) -> Result<(), ScanError> {
    let mut before = 0;
    for &Range { start, end } in rows {
        if start < before || end < start {
            return Err(ScanError::RowsOutOfOrder { start, end, before });
        }
        before = end;
    }
    Ok(())
}

/// The needed rows of each chunk of which only some are needed, counted from the start of the chunk.
pub(crate) type PartialChunks = BTreeMap<ChunkIndex, Vec<Range<u64>>>;

/// The chunks that these rows do not cover.
pub(crate) fn partial_chunks(table: &ParquetTable, rows: &[Range<u64>]) -> PartialChunks {
    let mut partial = table.rows_by_chunk(rows);
    partial.retain(|&chunk, ranges| {
        let rows = table.layout().rows(chunk);
        ranges.iter().map(|range| range.end - range.start).sum::<u64>() < rows.end - rows.start
    });
    partial
}

/// The pages that hold the rows, if they are a small part of their chunks: an index selection [CS04 §4.2].
pub(crate) fn sparse_pages(
    table: &ParquetTable,
    groups: &[GroupIndex],
    rows: &[Range<u64>],
) -> Option<Vec<PageIndex>> {
    let layout = table.layout();
    let bytes = |pages: &[PageIndex]| pages.iter().map(|&page| layout.bytes_of(page)).sum::<u64>();
    let chunks = rows.iter().flat_map(|rows| layout.chunks_in(rows.clone()));
    let whole: Vec<_> = chunks.map(|chunk| layout.rows(chunk)).collect();
    let (all, selected) = (table.pages_for(groups, &whole), table.pages_for(groups, rows));
    (bytes(&selected).saturating_mul(SPARSE_DIVISOR) <= bytes(&all)).then_some(selected)
}
