//! From `[table.…]` to layouts.

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{GroupIndex, Index, Layout, LayoutBuilder, PageIndex};

use super::document::TableForm;
use super::error::{SpecError, wrong};
use crate::workload::Table;

/// A table of the file. Tables clustered with it have the same layout, whose chunks hold the same keys of all of them.
#[derive(Clone, Debug)]
pub(super) struct NamedTable {
    pub(super) name: String,
    /// The position of the layout among the tables of the workload.
    pub(super) position: usize,
    pub(super) layout: Arc<Layout>,
    /// Its own number of rows. The layout has those of the table that the others are clustered with.
    pub(super) rows: u64,
    /// Its column groups in the layout.
    groups: Range<usize>,
    /// The names of its columns; a row layout has none.
    columns: Vec<String>,
}

/// All tables of a file, and the tables of the workload that have their pages.
pub(super) fn build_all(
    forms: &[(String, TableForm)],
) -> Result<(Vec<Table>, Vec<NamedTable>), SpecError> {
    let (mut tables, mut named) = (Vec::new(), Vec::new());
    for (name, form) in forms {
        let Some(leader) = &form.clustered_with else { continue };
        let key = format!("table.{name}.clustered_with");
        let found = forms.iter().find(|(other, _)| other == leader);
        let Some((_, found)) = found.filter(|(_, found)| found.clustered_with.is_none()) else {
            let leaders = forms.iter().filter(|(_, form)| form.clustered_with.is_none());
            let leaders: Vec<_> = leaders.map(|(name, _)| name.as_str()).collect();
            let problem = format!("`{leader}`: choose one of {}", leaders.join(", "));
            return Err(wrong(key, problem));
        };
        if form.chunks.is_some() || form.chunk_rows.is_some() {
            let problem = format!("leave out `chunks` and `chunk_rows`: `{leader}` has them");
            return Err(wrong(key, problem));
        }
        if chunks(leader, found)?.len() as u64 > form.rows {
            let problem = format!("fewer rows than `{leader}` has chunks");
            return Err(wrong(key, problem));
        }
    }
    for (position, (name, form)) in
        forms.iter().filter(|(_, form)| form.clustered_with.is_none()).enumerate()
    {
        let followers =
            forms.iter().filter(|(_, other)| other.clustered_with.as_ref() == Some(name));
        let members: Vec<_> =
            std::iter::once((name, form)).chain(followers.map(|(n, f)| (n, f))).collect();
        let mut parts = Vec::with_capacity(members.len());
        for (name, form) in &members {
            parts.push(Part {
                rows: form.rows,
                widths: widths(name, form)?,
                page: form.page.map(|page| page.0),
            });
        }
        let layout = Arc::new(layout(&chunks(name, form)?, &parts));
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        tables.push(Table { name: names.join(" + "), layout: Arc::clone(&layout) });
        let mut next = 0;
        for ((name, form), part) in members.iter().zip(&parts) {
            let groups = next..next + part.widths.len();
            next = groups.end;
            let columns = form.columns.iter().map(|(name, _)| name.clone()).collect();
            let layout = Arc::clone(&layout);
            named.push(NamedTable {
                name: (*name).clone(),
                position,
                layout,
                rows: form.rows,
                groups,
                columns,
            });
        }
    }
    Ok((tables, named))
}

/// Bytes of all pages.
pub(super) fn bytes(table: &Table) -> u64 {
    table.layout.page_bytes().iter().sum()
}

impl NamedTable {
    /// The column groups of these columns, or of all of its own. `TABLE.COLUMN` is a column of a table clustered with
    /// it.
    pub(super) fn groups(
        &self,
        key: &str,
        columns: Option<&[String]>,
        tables: &[NamedTable],
    ) -> Result<Vec<GroupIndex>, SpecError> {
        let Some(columns) = columns else {
            return Ok(self.groups.clone().map(GroupIndex::from_usize).collect());
        };
        let key = format!("{key}.columns");
        let group = |name: &String| {
            let other = name.split_once('.').and_then(|(table, column)| {
                let joined =
                    |other: &&NamedTable| other.position == self.position && other.name == table;
                Some((tables.iter().find(joined)?, column))
            });
            let (table, column) = other.unwrap_or((self, name));
            let found = table.columns.iter().position(|known| known == column);
            found.map(|at| GroupIndex::from_usize(table.groups.start + at)).ok_or_else(|| {
                let problem = match table.columns.as_slice() {
                    [] => format!("table `{}` has no named columns: leave the key out", table.name),
                    names => {
                        format!("there is no column `{name}`; choose from {}", names.join(", "))
                    }
                };
                wrong(&*key, problem)
            })
        };
        columns.iter().map(group).collect()
    }

    /// The rows of the layout with the keys of these rows of its own.
    pub(super) fn rows_of_layout(&self, own: Range<u64>) -> Range<u64> {
        let all = u128::from(self.layout.row_count());
        let scaled = |row: u64| u128::from(row) * all;
        let end = scaled(own.end).div_ceil(u128::from(self.rows)) as u64;
        (scaled(own.start) / u128::from(self.rows)) as u64..end
    }
}

/// Bytes per row of each column group.
fn widths(name: &str, form: &TableForm) -> Result<Vec<f64>, SpecError> {
    let key = format!("table.{name}");
    if form.rows == 0 {
        return Err(wrong(format!("{key}.rows"), "a table has at least one row"));
    }
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
    Ok(widths)
}

/// The row ranges of the chunks of a table.
fn chunks(name: &str, form: &TableForm) -> Result<Vec<Range<u64>>, SpecError> {
    let size = match (form.chunks, form.chunk_rows) {
        (Some(chunks), None) if (1..=form.rows).contains(&chunks) => ChunkSize::Count(chunks),
        (None, Some(rows)) if rows > 0 => ChunkSize::Rows(rows),
        _ => {
            let problem = "write either `chunks`, from 1 to the number of rows, or `chunk_rows`";
            return Err(wrong(format!("table.{name}"), problem));
        }
    };
    Ok(size.split(form.rows))
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

/// One of the tables that a layout holds.
struct Part {
    rows: u64,
    widths: Vec<f64>,
    page: Option<f64>,
}

impl Part {
    /// The rows of this table in each chunk, as if its keys were spread evenly over those of the first table.
    fn chunks(&self, chunks: &[Range<u64>]) -> Vec<Range<u64>> {
        let all = u128::from(chunks.last().map_or(1, |last| last.end));
        let own = |row: u64| (u128::from(row) * u128::from(self.rows) / all) as u64;
        chunks.iter().map(|chunk| own(chunk.start)..own(chunk.end)).collect()
    }
}

/// The layout of tables in chunks. `chunks` are rows of the first table.
fn layout(chunks: &[Range<u64>], parts: &[Part]) -> Layout {
    let mut builder = Layout::builder(parts.iter().map(|part| part.widths.len()).sum());
    let mut slices = vec![Vec::new(); chunks.len()];
    let mut group = 0;
    for part in parts {
        let chunks = part.chunks(chunks);
        for &width in &part.widths {
            let of_group = (GroupIndex::from_usize(group), width);
            add_column(&mut builder, of_group, part, &chunks, &mut slices);
            group += 1;
        }
    }
    for (chunk, slices) in chunks.iter().zip(slices) {
        builder.add_chunk(chunk.end - chunk.start, slices);
    }
    builder.build()
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

#[cfg(test)]
mod tests;
