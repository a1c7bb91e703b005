//! Numbers of chunks, pages and rows over all files of a table.

use std::sync::Arc;

use super::ParquetFile;

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
