//! From `[table.…]` to layouts.

mod changes;
mod files;

use std::ops::Range;
use std::sync::Arc;

use coscan_core::{GroupIndex, Index, Layout, PageIndex, Time};

use self::files::{ChunkSize, Part, add_file};
use super::document::TableForm;
use super::error::{SpecError, wrong};
use super::units::Hertz;
use crate::table::{Table, TableChange};
use crate::workload::Stream;

/// A table of the file. Tables clustered with it have the same layout, whose chunks hold the same keys of all of them.
#[derive(Clone, Debug)]
pub(super) struct NamedTable {
    pub(super) name: String,
    /// The position of the layout among the tables of the workload.
    pub(super) position: usize,
    /// The table of the workload.
    pub(super) table: Table,
    /// The number of versions that it has at the start.
    pub(super) versions: usize,
    /// Whether it changes during the run.
    pub(super) changes: bool,
    /// Its own number of rows. The layout has those of the table that the others are clustered with.
    pub(super) rows: u64,
    /// Its column groups in the layout.
    groups: Range<usize>,
    /// The names of its columns; a row layout has none.
    columns: Vec<String>,
}

/// All tables of a file, and what the workload has of them.
#[derive(Clone, Debug, Default)]
pub(super) struct BuiltTables {
    pub(super) named: Vec<NamedTable>,
    /// The tables of the workload that have their pages.
    pub(super) tables: Vec<Table>,
    /// Their changes that nothing is read for.
    pub(super) changes: Vec<(Time, TableChange)>,
    /// A stream for each table that has checkpoints.
    pub(super) checkpoints: Vec<Stream>,
}

/// Builds all tables of a file. `clock` is the machine's, if it is given.
pub(super) fn build_all(
    forms: &[(String, TableForm)],
    clock: Option<Hertz>,
) -> Result<BuiltTables, SpecError> {
    let mut built = BuiltTables::default();
    check_clusters(forms)?;
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
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        let changing = members.iter().find(|(_, form)| changes::has_changes(form));
        if let (Some((name, _)), [_, _, ..]) = (changing, members.as_slice()) {
            let problem = "a table that is clustered with others does not change";
            return Err(wrong(format!("table.{name}"), problem));
        }
        let mut builder = Layout::builder(parts.iter().map(|part| part.widths.len()).sum());
        let at_start = chunks(name, form)?;
        add_file(&mut builder, &at_start, &parts);
        let changes = changes::build(name, form, position, &mut builder, (&at_start, &parts[0]))?;
        let table = Table {
            name: names.join(" + "),
            layout: Arc::new(builder.build()),
            initial_chunk_count: at_start.len(),
        };
        built.tables.push(table.clone());
        let mut next = 0;
        for ((name, form), part) in members.iter().zip(&parts) {
            let groups = next..next + part.widths.len();
            next = groups.end;
            let columns = form.columns.iter().map(|(name, _)| name.clone()).collect();
            built.named.push(NamedTable {
                name: (*name).clone(),
                position,
                table: table.clone(),
                versions: changes.versions_at_start(),
                changes: changes.changes_during_run(),
                rows: form.rows,
                groups,
                columns,
            });
        }
        if let Some(form) = &form.checkpoints {
            let leader = &built.named[built.named.len() - members.len()];
            built.checkpoints.push(changes.checkpoint_stream(form, leader, clock)?);
        }
        built.changes.extend(changes.timed);
    }
    Ok(built)
}

/// Checks which tables are clustered with which.
fn check_clusters(forms: &[(String, TableForm)]) -> Result<(), SpecError> {
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
    Ok(())
}

/// Bytes of all pages of the first version.
pub(super) fn bytes(table: &Table) -> u64 {
    let pages = (0..table.layout.page_count()).map(PageIndex::from_usize);
    let at_start = pages.filter(|&page| {
        let first = table.layout.chunks_of(page).first();
        first.is_none_or(|chunk| chunk.as_usize() < table.initial_chunk_count)
    });
    at_start.map(|page| table.layout.bytes_of(page)).sum()
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
        let all = u128::from(self.table.rows_at_start());
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

#[cfg(test)]
mod tests;
