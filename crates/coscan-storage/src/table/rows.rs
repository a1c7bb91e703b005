//! Which pages hold some rows: an index selection needs just those [CS04 §4.2].

use std::ops::Range;

use coscan_core::{ChunkIndex, PageIndex};

use super::ParquetFile;
use super::layout::{page_locations, rows_of_data_page};
use super::pages::{PageContents, StoredChunk, StoredPage};

impl ParquetFile {
    /// The pages of the slice of a chunk and a column that [`Self::decode`] needs for some rows, which count from the
    /// first row of the chunk and ascend without overlap. In the slice's order; none for no rows.
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
        let wanted = |of_page: &Range<u64>| {
            let next = rows.partition_point(|rows| start + rows.end <= of_page.start);
            rows[next..]
                .iter()
                .take_while(|rows| start + rows.start < of_page.end)
                .any(|rows| !rows.is_empty())
        };
        let mut needed: Vec<_> =
            slice.iter().map(|&page| wanted(&self.rows_of_page(stored, self.page(page)))).collect();
        // Runs are decoded as one stretch: what lies between two of them belongs to it.
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

    /// The rows that a page of a chunk holds or is needed for, counted from the first row of the chunk's first row
    /// group. A part may need only some of them.
    fn rows_of_page(&self, chunk: &StoredChunk, page: &StoredPage) -> Range<u64> {
        let metadata = &self.metadata;
        let row_count = |row_group| metadata.row_group(row_group).num_rows().cast_unsigned();
        let before = chunk.row_groups.iter().take_while(|&&other| other != page.row_group);
        let start: u64 = before.map(|&row_group| row_count(row_group)).sum();
        let rows = row_count(page.row_group);
        let run = match &page.contents {
            PageContents::Run { leaf, data_pages } => {
                page_locations(metadata, page.row_group, *leaf).map(|found| (found, data_pages))
            }
            PageContents::Whole | PageContents::Dictionary => None,
        };
        match run {
            Some((locations, data_pages)) => {
                let of = |data_page| rows_of_data_page(locations, data_page, rows);
                start + of(data_pages.start).start..start + of(data_pages.end - 1).end
            }
            None => start..start + rows,
        }
    }
}
