//! The pages of selected rows. An index selection reads no others [CS04 §4.2].

use std::ops::Range;

use coscan_core::{ChunkIndex, PageIndex};
use parquet::arrow::arrow_reader::RowSelection;

use super::ParquetFile;
use super::pages::PageContents;
use super::row_ranges::{rows_of_page, rows_of_row_groups};

impl ParquetFile {
    /// The pages of a column of a chunk that [`Self::decode`] needs for some rows, in the order of [`Self::slice`].
    /// Rows count from the first row of the chunk and ascend without overlap.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn pages_of_rows(
        &self,
        chunk: ChunkIndex,
        column: usize,
        rows: &[Range<u64>],
    ) -> Vec<PageIndex> {
        let slice = self.slice(chunk, column);
        let stored = self.chunk(chunk);
        let (start, is_all) =
            (stored.rows.start, rows.iter().eq(std::iter::once(&(0..stored.row_count()))));
        if is_all {
            return slice.to_vec();
        }
        let row_groups: Vec<_> = rows_of_row_groups(&self.metadata, stored).collect();
        let is_needed = |&page: &PageIndex| {
            let page = self.page(page);
            let in_chunk = row_groups.iter().find(|(other, _)| *other == page.row_group);
            let origin = in_chunk.map_or(0, |(_, rows)| rows.start);
            let held = rows_of_page(&self.metadata, page);
            let held = origin + held.start..origin + held.end;
            let next = rows.partition_point(|rows| start + rows.end <= held.start);
            rows[next..]
                .iter()
                .take_while(|rows| start + rows.start < held.end)
                .any(|rows| !rows.is_empty())
        };
        let mut needed: Vec<_> = slice.iter().map(is_needed).collect();
        // Runs are decoded as one stretch, with those between the first and the last.
        let is_run = |position: usize| {
            matches!(self.page(slice[position]).contents, PageContents::Run { .. })
        };
        let runs: Vec<_> =
            (0..slice.len()).filter(|&position| needed[position] && is_run(position)).collect();
        if let (Some(&first), Some(&last)) = (runs.first(), runs.last()) {
            needed[first..=last].fill(true);
        }
        slice.iter().zip(needed).filter(|(_, needed)| *needed).map(|(&page, _)| page).collect()
    }
}

/// The selection in parquet's form, counted over the rows of the pages; `None` for all of them.
pub(super) fn row_selection(
    chunk_start: u64,
    selected: &[Range<u64>],
    available: &[Range<u64>],
) -> Option<RowSelection> {
    let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut row_count = 0;
    for held in available {
        let first = selected.partition_point(|rows| chunk_start + rows.end <= held.start);
        let in_held =
            selected[first..].iter().take_while(|rows| chunk_start + rows.start < held.end);
        for rows in in_held.filter(|rows| !rows.is_empty()) {
            let start = (chunk_start + rows.start).max(held.start);
            let end = (chunk_start + rows.end).min(held.end);
            let shift = |row: u64| index(row_count + row - held.start);
            match ranges.last_mut() {
                Some(last) if last.end == shift(start) => last.end = shift(end),
                _ => ranges.push(shift(start)..shift(end)),
            }
        }
        row_count += held.end - held.start;
    }
    let row_count = index(row_count);
    let is_everything = ranges.iter().eq(std::iter::once(&(0..row_count)));
    (!is_everything).then(|| RowSelection::from_consecutive_ranges(ranges.into_iter(), row_count))
}
