//! Lays out the pages of a table: which bytes of which file serve which chunks.
//!
//! A row group that is not split has a page per column (column layout) or one page (row layout). In a split row group
//! a flat column has a page for its dictionary, which all parts need, and a page for every *run*: the longest stretch
//! of data pages that serve the same parts. Data pages of different columns end at different rows, so one that
//! straddles two parts is a page of its own that serves both; this is the "logical chunk" of [CS07 §6.1].

use std::ops::Range;

use coscan_core::{GroupIndex, Index, Layout, LayoutBuilder, PageIndex};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use super::chunks::{RowGroupShape, chunks_of_file};
use super::open::OpenFile;
use super::pages::{PageContents, StoredChunk, StoredPage};
use super::{PageLayout, TableOptions};

/// A table's layout and what its chunks and pages are in the files.
pub(super) struct Plan {
    pub(super) layout: Layout,
    pub(super) chunks: Vec<StoredChunk>,
    pub(super) pages: Vec<StoredPage>,
}

/// Lays out all files, one after the other.
pub(super) fn plan(files: &[OpenFile], column_count: usize, options: &TableOptions) -> Plan {
    let group_count = match options.layout {
        PageLayout::Column => column_count,
        PageLayout::Row => 1,
    };
    let mut planner = Planner {
        builder: Layout::builder(group_count),
        group_count,
        chunks: Vec::new(),
        pages: Vec::new(),
    };
    for (position, file) in files.iter().enumerate() {
        let shapes = row_group_shapes(&file.metadata, options);
        let chunks = chunks_of_file(position, &shapes, options.chunk_rows);
        for part in chunks.chunk_by(|a, b| a.is_part && a.row_groups == b.row_groups) {
            match (part[0].is_part, options.layout) {
                (true, _) => planner.add_parts(file, part),
                (false, PageLayout::Column) => planner.add_columns(file, &part[0]),
                (false, PageLayout::Row) => planner.add_rows(file, &part[0]),
            }
        }
    }
    Plan { layout: planner.builder.build(), chunks: planner.chunks, pages: planner.pages }
}

fn row_group_shapes(metadata: &ParquetMetaData, options: &TableOptions) -> Vec<RowGroupShape> {
    let shape = |row_group: usize| {
        let row_group_metadata = metadata.row_group(row_group);
        let has_pages = |leaf| page_locations(metadata, row_group, leaf).is_some();
        RowGroupShape {
            rows: row_group_metadata.num_rows().cast_unsigned(),
            can_split: options.layout == PageLayout::Column
                && (0..row_group_metadata.num_columns()).all(has_pages),
        }
    };
    (0..metadata.num_row_groups()).map(shape).collect()
}

/// Where the data pages of a column chunk lie, if the file says so and it makes sense: rows and bytes ascend, start
/// with the first row and stay inside the column chunk.
pub(super) fn page_locations(
    metadata: &ParquetMetaData,
    row_group: usize,
    leaf: usize,
) -> Option<&[PageLocation]> {
    let locations = metadata.offset_index()?.get(row_group)?.get(leaf)?.page_locations().as_slice();
    let (start, length) = metadata.row_group(row_group).column(leaf).byte_range();
    let rows = metadata.row_group(row_group).num_rows();
    let end_of = |location: &PageLocation| {
        location.offset.checked_add(i64::from(location.compressed_page_size))
    };
    let ascend = |pair: &[PageLocation]| {
        pair[0].first_row_index < pair[1].first_row_index
            && end_of(&pair[0]).is_some_and(|end| end <= pair[1].offset)
    };
    let (first, last) = (locations.first()?, locations.last()?);
    let makes_sense = first.first_row_index == 0
        && u64::try_from(first.offset).is_ok_and(|offset| offset >= start)
        && end_of(last)
            .is_some_and(|end| u64::try_from(end).is_ok_and(|end| end <= start + length))
        && last.first_row_index < rows
        && locations.iter().all(|location| location.compressed_page_size > 0)
        && locations.windows(2).all(ascend);
    makes_sense.then_some(locations)
}

/// The rows of a data page, counted from the first row of its row group.
pub(super) fn rows_of_data_page(
    locations: &[PageLocation],
    position: usize,
    row_group_rows: u64,
) -> Range<u64> {
    let start = |location: &PageLocation| location.first_row_index.cast_unsigned();
    start(&locations[position])..locations.get(position + 1).map_or(row_group_rows, start)
}

struct Planner {
    builder: LayoutBuilder,
    group_count: usize,
    chunks: Vec<StoredChunk>,
    pages: Vec<StoredPage>,
}

impl Planner {
    fn add_page(&mut self, group: usize, page: StoredPage) -> PageIndex {
        let index = self.builder.add_page(GroupIndex::from_usize(group), page.byte_count());
        self.pages.push(page);
        index
    }

    fn add_chunk(&mut self, chunk: &StoredChunk, slices: Vec<Vec<PageIndex>>) {
        self.builder.add_chunk(chunk.row_count(), slices);
        self.chunks.push(chunk.clone());
    }

    /// A chunk of whole row groups in a column layout.
    fn add_columns(&mut self, file: &OpenFile, chunk: &StoredChunk) {
        let mut slices = vec![Vec::new(); self.group_count];
        for &row_group in &chunk.row_groups {
            for (column, slice) in slices.iter_mut().enumerate() {
                slice.extend(self.add_whole_column(file, chunk.file, row_group, column));
            }
        }
        self.add_chunk(chunk, slices);
    }

    /// A chunk of whole row groups in a row layout.
    fn add_rows(&mut self, file: &OpenFile, chunk: &StoredChunk) {
        let mut slice = Vec::new();
        for &row_group in &chunk.row_groups {
            let ranges = (0..file.leaf_count()).map(|leaf| leaf_bytes(file, row_group, leaf));
            let bytes = ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            if let Some(bytes) = bytes {
                let contents = PageContents::Whole { leaves: 0..file.leaf_count() };
                slice.push(
                    self.add_page(0, StoredPage { file: chunk.file, row_group, bytes, contents }),
                );
            }
        }
        self.add_chunk(chunk, vec![slice]);
    }

    /// The parts of one split row group.
    fn add_parts(&mut self, file: &OpenFile, parts: &[StoredChunk]) {
        let mut slices = vec![vec![Vec::new(); self.group_count]; parts.len()];
        let (file_index, row_group) = (parts[0].file, parts[0].row_groups[0]);
        for column in 0..self.group_count {
            let locations = match file.flat_leaf(column) {
                Some(leaf) => {
                    page_locations(&file.metadata, row_group, leaf).map(|found| (leaf, found))
                }
                None => None,
            };
            match locations {
                Some((leaf, locations)) => {
                    for (page, served) in self.add_flat_column(file, parts, column, leaf, locations)
                    {
                        slices[served].iter_mut().for_each(|slices| slices[column].push(page));
                    }
                }
                None => {
                    let pages = self.add_whole_column(file, file_index, row_group, column);
                    slices.iter_mut().for_each(|slices| slices[column].extend(&pages));
                }
            }
        }
        for (part, slices) in parts.iter().zip(slices) {
            self.add_chunk(part, slices);
        }
    }

    /// The column chunks of one column of one row group: one page if they lie side by side, else one a leaf.
    fn add_whole_column(
        &mut self,
        file: &OpenFile,
        file_index: usize,
        row_group: usize,
        column: usize,
    ) -> Vec<PageIndex> {
        let leaves = file.leaves_of_column[column].clone();
        let ranges: Vec<_> = leaves.clone().map(|leaf| leaf_bytes(file, row_group, leaf)).collect();
        let is_adjacent = ranges.windows(2).all(|pair| pair[0].end == pair[1].start);
        let pages: Vec<_> = match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) if is_adjacent => vec![(first.start..last.end, leaves)],
            _ => ranges.into_iter().zip(leaves.map(|leaf| leaf..leaf + 1)).collect(),
        };
        let add = |(bytes, leaves)| {
            let contents = PageContents::Whole { leaves };
            self.add_page(column, StoredPage { file: file_index, row_group, bytes, contents })
        };
        pages.into_iter().map(add).collect()
    }

    /// The pages of a flat column of a split row group, each with the parts that it serves.
    fn add_flat_column(
        &mut self,
        file: &OpenFile,
        parts: &[StoredChunk],
        column: usize,
        leaf: usize,
        locations: &[PageLocation],
    ) -> Vec<(PageIndex, Range<usize>)> {
        let (file_index, row_group) = (parts[0].file, parts[0].row_groups[0]);
        let mut pages = Vec::new();
        let start = leaf_bytes(file, row_group, leaf).start;
        let first_data_page = locations[0].offset.cast_unsigned();
        if first_data_page > start {
            let contents = PageContents::Dictionary { leaf };
            let bytes = start..first_data_page;
            let page = StoredPage { file: file_index, row_group, bytes, contents };
            pages.push((self.add_page(column, page), 0..parts.len()));
        }
        for (data_pages, served) in runs(locations, parts) {
            let last = &locations[data_pages.end - 1];
            let end =
                last.offset.cast_unsigned() + u64::from(last.compressed_page_size.cast_unsigned());
            let bytes = locations[data_pages.start].offset.cast_unsigned()..end;
            let contents = PageContents::Run { leaf, data_pages };
            let page = StoredPage { file: file_index, row_group, bytes, contents };
            pages.push((self.add_page(column, page), served));
        }
        pages
    }
}

/// Longest stretches of data pages that serve the same parts, each with those parts.
fn runs(locations: &[PageLocation], parts: &[StoredChunk]) -> Vec<(Range<usize>, Range<usize>)> {
    let row_count = parts.last().map_or(0, |part| part.rows.end);
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for position in 0..locations.len() {
        let rows = rows_of_data_page(locations, position, row_count);
        let first = parts.partition_point(|part| part.rows.end <= rows.start);
        let end = parts.partition_point(|part| part.rows.start < rows.end);
        match runs.last_mut() {
            Some((data_pages, served)) if *served == (first..end) => data_pages.end = position + 1,
            _ => runs.push((position..position + 1, first..end)),
        }
    }
    runs
}

fn leaf_bytes(file: &OpenFile, row_group: usize, leaf: usize) -> Range<u64> {
    let (start, length) = file.metadata.row_group(row_group).column(leaf).byte_range();
    start..start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_page_that_straddles_two_parts_is_a_run_of_its_own() {
        let location =
            |first_row_index| PageLocation { offset: 4, compressed_page_size: 1, first_row_index };
        let part = |rows| StoredChunk { file: 0, row_groups: vec![0], rows, is_part: true };
        let locations = [0, 4, 8, 12, 16].map(location);
        let parts = [part(0..10), part(10..20)];
        assert_eq!(runs(&locations, &parts), [(0..2, 0..1), (2..3, 0..2), (3..5, 1..2)]);
        let parts = [part(0..12), part(12..20)];
        assert_eq!(runs(&locations, &parts), [(0..3, 0..1), (3..5, 1..2)]);
        let parts = [part(0..1), part(1..2), part(2..20)];
        assert_eq!(runs(&locations, &parts), [(0..1, 0..3), (1..5, 2..3)]);
    }
}
