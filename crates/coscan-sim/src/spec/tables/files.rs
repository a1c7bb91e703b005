//! The files of tables: their chunks and pages.

use std::ops::Range;

use coscan_core::{GroupIndex, Index, LayoutBuilder, PageIndex};

/// The number of chunks, or of rows in each.
#[derive(Clone, Copy)]
pub(super) enum ChunkSize {
    Count(u64),
    Rows(u64),
}

impl ChunkSize {
    /// The row ranges of the chunks of a table.
    pub(super) fn split(self, rows: u64) -> Vec<Range<u64>> {
        let count = match self {
            Self::Count(count) => count,
            Self::Rows(chunk_rows) => rows.div_ceil(chunk_rows),
        };
        let start = |chunk| match self {
            Self::Count(count) => u128::from(rows) * u128::from(chunk) / u128::from(count),
            Self::Rows(chunk_rows) => u128::from(chunk_rows) * u128::from(chunk),
        };
        let end = |chunk| start(chunk).min(u128::from(rows)) as u64;
        (0..count).map(|chunk| end(chunk)..end(chunk + 1)).collect()
    }
}

/// One of the tables that a layout holds.
pub(super) struct Part {
    pub(super) rows: u64,
    pub(super) widths: Vec<f64>,
    pub(super) page: Option<f64>,
}

impl Part {
    /// The rows of this table in each chunk, as if its keys were spread evenly over those of the first table.
    fn chunks(&self, chunks: &[Range<u64>]) -> Vec<Range<u64>> {
        let all = u128::from(chunks.last().map_or(1, |last| last.end));
        let own = |row: u64| (u128::from(row) * u128::from(self.rows) / all) as u64;
        chunks.iter().map(|chunk| own(chunk.start)..own(chunk.end)).collect()
    }
}

/// Adds the chunks of a file of each of these tables. `chunks` are rows of the file of the first table.
pub(super) fn add_file(builder: &mut LayoutBuilder, chunks: &[Range<u64>], parts: &[Part]) {
    let mut slices = vec![Vec::new(); chunks.len()];
    let mut group = 0;
    for part in parts {
        let chunks = part.chunks(chunks);
        for &width in &part.widths {
            let of_group = (GroupIndex::from_usize(group), width);
            add_column(builder, of_group, part, &chunks, &mut slices);
            group += 1;
        }
    }
    for (chunk, slices) in chunks.iter().zip(slices) {
        builder.add_chunk(chunk.end - chunk.start, slices);
    }
}

/// Adds a column. Pages of one size follow each other in each column, whatever chunks they serve [CS07 Figure 9].
/// Without a size, each column of each chunk is a page. In the layout's page order a column's pages are neighbours, as
/// in its file.
fn add_column(
    builder: &mut LayoutBuilder,
    (group, width): (GroupIndex, f64),
    part: &Part,
    chunks: &[Range<u64>],
    slices: &mut [Vec<Vec<PageIndex>>],
) {
    let pages = match part.page {
        Some(page) => ChunkSize::Rows(((page / width) as u64).max(1)).split(part.rows),
        None => chunks.to_vec(),
    };
    let mut next = 0;
    let mut last: Option<(Range<u64>, PageIndex)> = None;
    for (chunk, slice) in chunks.iter().zip(slices) {
        let mut of_chunk = Vec::new();
        of_chunk
            .extend(last.iter().filter(|(held, _)| held.end > chunk.start).map(|(_, page)| *page));
        while next < pages.len() && pages[next].start < chunk.end {
            let held = pages[next].clone();
            let bytes = ((held.end - held.start) as f64 * width).round().max(1.0) as u64;
            let page = builder.add_page(group, bytes);
            of_chunk.push(page);
            last = Some((held, page));
            next += 1;
        }
        slice.push(of_chunk);
    }
}
