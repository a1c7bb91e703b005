//! Lays out the pages of a file: the bytes that each chunk needs.
//!
//! A row group that is not split has a page per column (column layout) or one page (row layout). In a split row group
//! a flat column has a page for its dictionary, which all parts need, and a page for every *run*: the longest stretch
//! of data pages that serve the same parts. Data pages of different columns end at different rows, so one that
//! straddles two parts is a page of its own that serves both; this is the "logical chunk" of [CS07 §6.1].

use std::ops::Range;

use arrow_schema::{DataType, Fields};
use coscan_core::{Index, PageIndex};
use parquet::file::metadata::ParquetMetaData;

use super::chunks::{RowGroupShape, chunks_of_file};
use super::leaves::flat_leaf;
use super::pages::{PageContents, Slices, StoredChunk, StoredPage};
use super::row_ranges::{DataPages, row_count};
use super::{FileOptions, PageLayout};

/// The most parts of a row group for each data page of the column that has most. A layout is no larger than what the
/// footer lists, whatever number of rows it names.
const PARTS_PER_PAGE_MAX: u64 = 16;

/// The chunks and pages of a file. A column layout has a group of pages per column, a row layout one group.
pub(super) struct FileLayout {
    pub(super) chunks: Vec<StoredChunk>,
    pub(super) pages: Vec<StoredPage>,
    pub(super) slices: Slices,
}

impl FileLayout {
    pub(super) fn memory_bytes(&self) -> usize {
        let row_groups = self.chunks.iter().map(|chunk| size_of_val(chunk.row_groups.as_slice()));
        size_of_val(self.chunks.as_slice())
            + row_groups.sum::<usize>()
            + size_of_val(self.pages.as_slice())
            + self.slices.memory_bytes()
    }
}

/// Lays out a file with these top-level columns, and the leaves of each.
pub(super) fn plan(
    metadata: &ParquetMetaData,
    fields: &Fields,
    leaves_of_column: &[Range<usize>],
    options: &FileOptions,
) -> FileLayout {
    let group_count = match options.layout {
        PageLayout::Column => leaves_of_column.len(),
        PageLayout::Row => 1,
    };
    let layout =
        FileLayout { chunks: Vec::new(), pages: Vec::new(), slices: Slices::new(group_count) };
    let mut planner = Planner { metadata, leaves_of_column, group_count, layout };
    let shapes = row_group_shapes(metadata, options);
    // Each row group has its own dictionary: small keys may overflow on the values of several.
    let joins = !fields.iter().any(|field| has_small_keys(field.data_type()));
    let chunks = chunks_of_file(&shapes, options.chunk_rows, joins);
    for part in chunks.chunk_by(|a, b| a.is_part && a.row_groups == b.row_groups) {
        match (part[0].is_part, options.layout) {
            (true, _) => planner.add_parts(part),
            (false, PageLayout::Column) => planner.add_columns(&part[0]),
            (false, PageLayout::Row) => planner.add_rows(&part[0]),
        }
    }
    FileLayout { chunks, ..planner.layout }
}

fn has_small_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(key, _) => key.primitive_width().is_some_and(|width| width < 4),
        DataType::Struct(fields) => fields.iter().any(|field| has_small_keys(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_small_keys(field.data_type()),
        _ => false,
    }
}

fn row_group_shapes(metadata: &ParquetMetaData, options: &FileOptions) -> Vec<RowGroupShape> {
    let parts_max = |row_group: usize| {
        let counts = (0..metadata.row_group(row_group).num_columns())
            .map(|leaf| DataPages::of(metadata, row_group, leaf).map(DataPages::count));
        let counts: Option<Vec<_>> = counts.collect();
        counts?.into_iter().max().map(|count| (count as u64).saturating_mul(PARTS_PER_PAGE_MAX))
    };
    let shape = |row_group: usize| RowGroupShape {
        rows: row_count(metadata, row_group),
        parts_max: match options.layout {
            PageLayout::Column => parts_max(row_group).unwrap_or(1),
            PageLayout::Row => 1,
        },
    };
    (0..metadata.num_row_groups()).map(shape).collect()
}

struct Planner<'a> {
    metadata: &'a ParquetMetaData,
    leaves_of_column: &'a [Range<usize>],
    group_count: usize,
    /// The layout so far, without the chunks.
    layout: FileLayout,
}

impl Planner<'_> {
    fn add_page(
        &mut self,
        row_group: usize,
        bytes: Range<u64>,
        contents: PageContents,
    ) -> PageIndex {
        self.layout.pages.push(StoredPage { row_group, bytes, contents });
        PageIndex::from_usize(self.layout.pages.len() - 1)
    }

    /// Adds a chunk of whole row groups in a column layout.
    fn add_columns(&mut self, chunk: &StoredChunk) {
        let mut slices = vec![Vec::new(); self.group_count];
        for &row_group in &chunk.row_groups {
            for (column, slice) in slices.iter_mut().enumerate() {
                slice.extend(self.add_whole_column(row_group, column));
            }
        }
        self.layout.slices.push(&slices);
    }

    /// Adds a chunk of whole row groups in a row layout.
    fn add_rows(&mut self, chunk: &StoredChunk) {
        let mut slice = Vec::new();
        for &row_group in &chunk.row_groups {
            let leaf_count = self.metadata.row_group(row_group).num_columns();
            let ranges = (0..leaf_count).map(|leaf| self.leaf_bytes(row_group, leaf));
            let bytes = ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            slice.extend(bytes.map(|bytes| self.add_page(row_group, bytes, PageContents::Whole)));
        }
        self.layout.slices.push(&[slice]);
    }

    /// Adds the parts of one split row group.
    fn add_parts(&mut self, parts: &[StoredChunk]) {
        let metadata = self.metadata;
        let mut slices = vec![vec![Vec::new(); self.group_count]; parts.len()];
        let row_group = parts[0].row_groups[0];
        for column in 0..self.group_count {
            let leaf = flat_leaf(metadata, &self.leaves_of_column[column]);
            let data_pages =
                leaf.and_then(|leaf| Some((leaf, DataPages::of(metadata, row_group, leaf)?)));
            match data_pages {
                Some((leaf, data_pages)) => {
                    for (page, served) in self.add_flat_column(parts, leaf, data_pages) {
                        slices[served].iter_mut().for_each(|slices| slices[column].push(page));
                    }
                }
                None => {
                    let pages = self.add_whole_column(row_group, column);
                    slices.iter_mut().for_each(|slices| slices[column].extend(&pages));
                }
            }
        }
        slices.iter().for_each(|slices| self.layout.slices.push(slices));
    }

    /// Adds the column chunks of one column of one row group: one page if they are adjacent, else one per leaf.
    fn add_whole_column(&mut self, row_group: usize, column: usize) -> Vec<PageIndex> {
        let leaves = self.leaves_of_column[column].clone();
        let ranges: Vec<_> = leaves.map(|leaf| self.leaf_bytes(row_group, leaf)).collect();
        let is_adjacent = ranges.windows(2).all(|pair| pair[0].end == pair[1].start);
        let mut add = |bytes| self.add_page(row_group, bytes, PageContents::Whole);
        match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) if is_adjacent => vec![add(first.start..last.end)],
            _ => ranges.into_iter().map(add).collect(),
        }
    }

    /// Adds the pages of a flat column of a split row group, and returns each with the parts that it serves.
    fn add_flat_column(
        &mut self,
        parts: &[StoredChunk],
        leaf: usize,
        all: DataPages<'_>,
    ) -> Vec<(PageIndex, Range<usize>)> {
        let row_group = parts[0].row_groups[0];
        let mut pages = Vec::new();
        let start = self.leaf_bytes(row_group, leaf).start;
        let first_data_page = all.bytes(0..1).start;
        if first_data_page > start {
            let bytes = start..first_data_page;
            let page = self.add_page(row_group, bytes, PageContents::Dictionary);
            pages.push((page, 0..parts.len()));
        }
        for (data_pages, served) in runs(all, parts) {
            let bytes = all.bytes(data_pages.clone());
            let contents = PageContents::Run { leaf, data_pages };
            pages.push((self.add_page(row_group, bytes, contents), served));
        }
        pages
    }

    fn leaf_bytes(&self, row_group: usize, leaf: usize) -> Range<u64> {
        let (start, length) = self.metadata.row_group(row_group).column(leaf).byte_range();
        start..start + length
    }
}

/// The longest stretches of data pages that serve the same parts, each with those parts.
fn runs(all: DataPages<'_>, parts: &[StoredChunk]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for position in 0..all.count() {
        let rows = all.rows(position..position + 1);
        let first = parts.partition_point(|part| part.rows.end <= rows.start);
        let end = parts.partition_point(|part| part.rows.start < rows.end);
        match runs.last_mut() {
            Some((data_pages, served)) if *served == (first..end) => data_pages.end = position + 1,
            _ => runs.push((position..position + 1, first..end)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use parquet::file::page_index::offset_index::PageLocation;

    use super::*;

    #[test]
    fn a_data_page_that_straddles_two_parts_is_a_run_of_its_own() {
        let location =
            |first_row_index| PageLocation { offset: 4, compressed_page_size: 1, first_row_index };
        let part = |rows| StoredChunk { row_groups: vec![0], rows, is_part: true };
        let locations = [0, 4, 8, 12, 16].map(location);
        let all = DataPages { locations: &locations, row_count: 20 };
        let parts = [part(0..10), part(10..20)];
        assert_eq!(runs(all, &parts), [(0..2, 0..1), (2..3, 0..2), (3..5, 1..2)]);
        let parts = [part(0..12), part(12..20)];
        assert_eq!(runs(all, &parts), [(0..3, 0..1), (3..5, 1..2)]);
        let parts = [part(0..1), part(1..2), part(2..20)];
        assert_eq!(runs(all, &parts), [(0..1, 0..3), (1..5, 2..3)]);
    }
}
