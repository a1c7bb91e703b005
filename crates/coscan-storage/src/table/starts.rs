//! Numbers of chunks, pages and rows over all files of a table.

use std::sync::Arc;

use coscan_core::{ChunkIndex, Index, PageIndex};

use super::{ParquetFile, ParquetTable};

/// The first chunk, page and row of each file, and the end of the last file.
pub(super) struct Starts {
    pub(super) chunks: Vec<usize>,
    pub(super) pages: Vec<usize>,
    pub(super) rows: Vec<u64>,
}

impl Starts {
    pub(super) fn of(files: &[Arc<ParquetFile>]) -> Self {
        let (mut chunks, mut pages, mut rows) = (vec![0], vec![0], vec![0]);
        for (position, file) in files.iter().enumerate() {
            chunks.push(chunks[position] + file.chunk_count());
            pages.push(pages[position] + file.page_count());
            rows.push(rows[position] + file.row_count());
        }
        Self { chunks, pages, rows }
    }
}

/// The position of the range that holds an index, and the index within that range. Ranges begin at these starts; the
/// last start is the end.
pub(super) fn place(starts: &[usize], index: usize) -> (usize, usize) {
    let end = starts.last().copied().unwrap_or_default();
    assert!(index < end, "{index} of {end} exists");
    let range = starts.partition_point(|&start| start <= index) - 1;
    (range, index - starts[range])
}

impl ParquetTable {
    /// The file that holds a chunk, an index into [`Self::parquet_files`], and the chunk's number within it.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn place_of(&self, chunk: ChunkIndex) -> (usize, ChunkIndex) {
        let (file, chunk) = place(&self.base.starts.chunks, chunk.as_usize());
        (file, ChunkIndex::from_usize(chunk))
    }

    /// The file that holds a chunk, an index into [`Self::parquet_files`].
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk_file(&self, chunk: ChunkIndex) -> usize {
        self.place_of(chunk).0
    }

    /// The file that holds a page, an index into [`Self::parquet_files`], and the page's number within it.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn place_of_page(&self, page: PageIndex) -> (usize, PageIndex) {
        let (file, page) = place(&self.base.starts.pages, page.as_usize());
        (file, PageIndex::from_usize(page))
    }

    /// The number over all files of a page of a file.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn page_of_file(&self, file: usize, page: PageIndex) -> PageIndex {
        PageIndex::from_usize(self.base.starts.pages[file] + page.as_usize())
    }

    /// The first row of a file, counted from the start of the table.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn first_row(&self, file: usize) -> u64 {
        self.base.starts.rows[file]
    }

    /// The file that holds a row, counted from the start of the table: an index into [`Self::parquet_files`].
    #[must_use]
    pub fn file_of_row(&self, row: u64) -> usize {
        self.base.starts.rows.partition_point(|&start| start <= row).saturating_sub(1)
    }
}
