//! The rows of row groups, data pages and stored pages, computed in one place.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use super::pages::{PageContents, StoredChunk, StoredPage};

/// The most values, and so rows, of a data page: its header counts them in 32 bits.
pub(super) const PAGE_ROWS_MAX: u64 = i32::MAX.cast_unsigned() as u64;

/// The number of rows of a row group.
pub(super) fn row_count(metadata: &ParquetMetaData, row_group: usize) -> u64 {
    metadata.row_group(row_group).num_rows().cast_unsigned()
}

/// The row groups of a chunk, each with its rows, counted from the first row of the first of them.
pub(super) fn rows_of_row_groups<'a>(
    metadata: &'a ParquetMetaData,
    chunk: &'a StoredChunk,
) -> impl Iterator<Item = (usize, Range<u64>)> + 'a {
    let mut end = 0;
    chunk.row_groups.iter().map(move |&row_group| {
        let start = end;
        end += row_count(metadata, row_group);
        (row_group, start..end)
    })
}

/// The rows that need a page, counted from the first row of its row group. A part may need only some of them.
pub(super) fn rows_of_page(metadata: &ParquetMetaData, page: &StoredPage) -> Range<u64> {
    let run = match &page.contents {
        PageContents::Run { leaf, data_pages } => {
            DataPages::of(metadata, page.row_group, *leaf).map(|all| all.rows(data_pages.clone()))
        }
        PageContents::Whole | PageContents::Dictionary => None,
    };
    run.unwrap_or_else(|| 0..row_count(metadata, page.row_group))
}

/// The data pages of a column chunk, as the offset index of the file lists them (Parquet format, "Page Index").
#[derive(Clone, Copy)]
pub(super) struct DataPages<'a> {
    pub(super) locations: &'a [PageLocation],
    /// The number of rows of the row group.
    pub(super) row_count: u64,
}

impl<'a> DataPages<'a> {
    /// The data pages; `None` if the file does not list them, or the list is invalid. Rows and bytes must ascend, start
    /// with the first row and stay inside the column chunk, and no page may have more rows than one can hold.
    pub(super) fn of(metadata: &'a ParquetMetaData, row_group: usize, leaf: usize) -> Option<Self> {
        let row_count = row_count(metadata, row_group);
        let index = metadata.offset_index()?.get(row_group)?.get(leaf)?;
        let data_pages = Self { locations: index.page_locations().as_slice(), row_count };
        let (start, length) = metadata.row_group(row_group).column(leaf).byte_range();
        data_pages.makes_sense(&(start..start + length)).then_some(data_pages)
    }

    fn makes_sense(self, column_chunk: &Range<u64>) -> bool {
        let (Some(first), Some(last)) = (self.locations.first(), self.locations.last()) else {
            return false;
        };
        let end_of = |location: &PageLocation| {
            location.offset.checked_add(i64::from(location.compressed_page_size))
        };
        let ascend = |pair: &[PageLocation]| {
            pair[0].first_row_index < pair[1].first_row_index
                && end_of(&pair[0]).is_some_and(|end| end <= pair[1].offset)
        };
        let has_rows = |page: usize| {
            let rows = self.rows(page..page + 1);
            rows.end - rows.start <= PAGE_ROWS_MAX
        };
        let last_end = end_of(last).and_then(|end| u64::try_from(end).ok());
        first.first_row_index == 0
            && u64::try_from(first.offset).is_ok_and(|offset| offset >= column_chunk.start)
            && last_end.is_some_and(|end| end <= column_chunk.end)
            && last.first_row_index.cast_unsigned() < self.row_count
            && self.locations.iter().all(|location| location.compressed_page_size > 0)
            && self.locations.windows(2).all(ascend)
            && (0..self.count()).all(has_rows)
    }

    pub(super) fn count(self) -> usize {
        self.locations.len()
    }

    /// The rows of consecutive data pages, at least one, counted from the first row of the row group.
    pub(super) fn rows(self, data_pages: Range<usize>) -> Range<u64> {
        let start = |location: &PageLocation| location.first_row_index.cast_unsigned();
        let end = self.locations.get(data_pages.end).map_or(self.row_count, start);
        start(&self.locations[data_pages.start])..end
    }

    /// The range in the file of consecutive data pages, at least one, with any gaps between them.
    pub(super) fn bytes(self, data_pages: Range<usize>) -> Range<u64> {
        let last = &self.locations[data_pages.end - 1];
        let end = last.offset + i64::from(last.compressed_page_size);
        self.locations[data_pages.start].offset.cast_unsigned()..end.cast_unsigned()
    }

    /// The number of data pages that hold the first `rows` rows of the row group.
    pub(super) fn holding_first(self, rows: u64) -> usize {
        self.locations.partition_point(|page| page.first_row_index.cast_unsigned() < rows)
    }
}
