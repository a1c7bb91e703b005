//! From `[table.…]` to layouts.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{GroupIndex, Index, Layout, PageIndex};

use super::document::TableForm;
use super::error::{SpecError, wrong};
use crate::workload::Table;

/// A table and the names of its columns; a row layout has none.
#[derive(Clone, Debug)]
pub(super) struct NamedTable {
    pub(super) table: Table,
    pub(super) columns: Vec<String>,
}

impl NamedTable {
    pub(super) fn layout(&self) -> &Layout {
        &self.table.layout
    }

    /// Bytes of all pages.
    pub(super) fn bytes(&self) -> u64 {
        let pages = (0..self.layout().page_count()).map(PageIndex::from_usize);
        pages.map(|page| self.layout().bytes_of(page)).sum()
    }

    /// The column groups of these columns, or of all.
    pub(super) fn groups(
        &self,
        key: &str,
        columns: Option<&[String]>,
    ) -> Result<Vec<GroupIndex>, SpecError> {
        let Some(columns) = columns else {
            return Ok((0..self.layout().group_count()).map(GroupIndex::from_usize).collect());
        };
        let group = |name: &String| {
            let found = self.columns.iter().position(|column| column == name);
            found.map(GroupIndex::from_usize).ok_or_else(|| match self.columns.as_slice() {
                [] => wrong(
                    format!("{key}.columns"),
                    format!("table `{}` has no named columns: leave the key out", self.table.name),
                ),
                names => wrong(
                    format!("{key}.columns"),
                    format!("there is no column `{name}`; choose from {}", names.join(", ")),
                ),
            })
        };
        columns.iter().map(group).collect()
    }
}

/// Builds the table of a form.
pub(super) fn build(name: &str, form: &TableForm) -> Result<NamedTable, SpecError> {
    let key = format!("table.{name}");
    if form.rows == 0 {
        return Err(wrong(format!("{key}.rows"), "a table has at least one row"));
    }
    let chunk_rows = match (form.chunks, form.chunk_rows) {
        (Some(chunks), None) if (1..=form.rows).contains(&chunks) => ChunkSize::Count(chunks),
        (None, Some(rows)) if rows > 0 => ChunkSize::Rows(rows),
        _ => {
            let problem = "write either `chunks`, from 1 to the number of rows, or `chunk_rows`";
            return Err(wrong(key, problem));
        }
    };
    let widths: Vec<f64> = match (form.size, form.columns.as_slice()) {
        (Some(size), []) => vec![size.0 / form.rows as f64],
        (None, [_, ..]) => form.columns.iter().map(|&(_, width)| width).collect(),
        _ => {
            let problem = "write either `size` of the whole table (row layout) or `columns` with bytes per row \
                           (column layout)";
            return Err(wrong(key, problem));
        }
    };
    if widths.iter().any(|&width| width <= 0.0) {
        return Err(wrong(key, "every column takes more than 0 bytes per row"));
    }
    let layout = layout(form.rows, chunk_rows, &widths, form.page.map(|page| page.0));
    let table = Table { name: name.to_owned(), layout: Arc::new(layout) };
    let columns = form.columns.iter().map(|(name, _)| name.clone()).collect();
    Ok(NamedTable { table, columns })
}

#[derive(Clone, Copy)]
enum ChunkSize {
    Count(u64),
    Rows(u64),
}

impl ChunkSize {
    /// The row ranges of the chunks of a table.
    fn split(self, rows: u64) -> Vec<Range<u64>> {
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

/// Pages of one size follow each other in each column, whatever chunks they serve [CS07 Figure 9]; without a size each
/// column of each chunk is a page. In the layout's page order a column's pages are neighbours, as in its file.
fn layout(rows: u64, chunk_size: ChunkSize, widths: &[f64], page: Option<f64>) -> Layout {
    let chunks = chunk_size.split(rows);
    let mut builder = Layout::builder(widths.len());
    let mut slices = vec![Vec::new(); chunks.len()];
    for (group, &width) in widths.iter().enumerate() {
        let group = GroupIndex::from_usize(group);
        let pages = match page {
            Some(page) => ChunkSize::Rows(((page / width) as u64).max(1)).split(rows),
            None => chunks.clone(),
        };
        let mut next = 0;
        let mut last: Option<(Range<u64>, PageIndex)> = None;
        for (chunk, slice) in chunks.iter().zip(&mut slices) {
            let mut of_chunk = Vec::new();
            of_chunk.extend(
                last.iter().filter(|(held, _)| held.end > chunk.start).map(|(_, page)| *page),
            );
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
    for (chunk, slices) in chunks.iter().zip(slices) {
        builder.add_chunk(chunk.end - chunk.start, slices);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use coscan_core::ChunkIndex;

    use super::*;

    /// Ten rows a chunk; pages of `a` hold 4 rows, pages of `b` 20.
    #[test]
    fn pages_do_not_end_where_chunks_do() {
        let layout = layout(30, ChunkSize::Count(3), &[5.0, 1.0], Some(20.0));
        let pages = |chunk, group| {
            let slice = layout.slice(ChunkIndex(chunk), GroupIndex(group));
            slice.iter().map(|page| page.0).collect::<Vec<_>>()
        };
        assert_eq!(pages(0, 0), [0, 1, 2]);
        assert_eq!(pages(1, 0), [2, 3, 4]);
        assert_eq!(pages(2, 0), [5, 6, 7]);
        assert_eq!((pages(0, 1), pages(1, 1), pages(2, 1)), (vec![8], vec![8], vec![9]));
        assert_eq!(layout.bytes_of(PageIndex(9)), 10);
    }

    #[test]
    fn a_row_layout_has_one_page_a_chunk() {
        let layout = layout(100, ChunkSize::Rows(30), &[2.0], None);
        assert_eq!((layout.chunk_count(), layout.page_count()), (4, 4));
        assert_eq!(layout.bytes_of(PageIndex(3)), 20);
    }
}
