//! Changes of a table: local chunks, appended files, checkpoints.

use std::ops::Range;

use coscan_core::{ChunkIndex, GroupIndex, Index, LayoutBuilder, Order, Time};

use super::NamedTable;
use super::files::{ChunkSize, Part, add_file};
use crate::spec::document::{CheckpointsForm, TableForm};
use crate::spec::error::{SpecError, wrong};
use crate::spec::quantities::{check_percent, cost};
use crate::spec::units::Hertz;
use crate::table::TableChange;
use crate::workload::{Query, Stream};

/// Whether a table changes, or has changed before the start.
pub(super) fn has_changes(form: &TableForm) -> bool {
    form.local_percent.is_some() || form.appends.is_some() || form.checkpoints.is_some()
}

/// The changes of a table. Their chunks are in its layout.
pub(super) struct Changes {
    /// Those that nothing is read for.
    pub(super) timed: Vec<(Time, TableChange)>,
    checkpoints: Vec<TableChange>,
    /// The rows of the first version in the place of which checkpoints put others.
    checkpointed: Range<u64>,
}

/// Adds the chunks of all changes of a table to its layout. `first` is its first version: the rows of the chunks, and the
/// form of its pages.
pub(super) fn build(
    name: &str,
    form: &TableForm,
    position: usize,
    builder: &mut LayoutBuilder,
    (chunks, part): (&[Range<u64>], &Part),
) -> Result<Changes, SpecError> {
    let key = format!("table.{name}");
    let mut next = chunks.len();
    let mut file = |rows: &[Range<u64>]| {
        let start = rows.first().map_or(0, |first| first.start);
        let rows: Vec<_> = rows.iter().map(|rows| rows.start - start..rows.end - start).collect();
        let of_file = Part {
            rows: rows.last().map_or(0, |last| last.end),
            widths: part.widths.clone(),
            page: part.page,
        };
        add_file(builder, &rows, &[of_file]);
        next += rows.len();
        (next - rows.len()..next).map(ChunkIndex::from_usize).collect::<Vec<_>>()
    };
    let change = |replaced, added| TableChange { table: position, replaced, added };
    let mut timed = Vec::new();
    // The chunks that the newest version has in the places of those of the first one.
    let mut newest: Vec<_> = (0..chunks.len()).map(ChunkIndex::from_usize).collect();
    let mut replace = |places: Range<usize>, file: &mut dyn FnMut(&[Range<u64>]) -> Vec<_>| {
        let added = file(&chunks[places.clone()]);
        let replaced = newest.splice(places, added.iter().copied()).collect();
        change(replaced, added)
    };
    if let Some(percent) = form.local_percent {
        if !(0.0..=100.0).contains(&percent) {
            return Err(wrong(format!("{key}.local_percent"), "write 0 to 100"));
        }
        let places = chunks.len() - part_of(chunks.len(), percent)..chunks.len();
        timed.push((Time(0), replace(places, &mut file)));
    }
    if let Some(form) = &form.appends {
        if form.rows == 0 || form.every.0 == 0 {
            let problem = "write at least one row, and an interval above 0";
            return Err(wrong(format!("{key}.appends"), problem));
        }
        let chunk_rows = chunks.iter().map(|rows| rows.end - rows.start).max().unwrap_or(1);
        for number in 1..=form.count {
            let at = Time(form.every.0.saturating_mul(number));
            let added = file(&ChunkSize::Rows(chunk_rows).split(form.rows));
            timed.push((at, change(Vec::new(), added)));
        }
    }
    let mut checkpoints = Vec::new();
    let mut checkpointed = 0..0;
    if let Some(form) = &form.checkpoints {
        let key = format!("{key}.checkpoints");
        let (percent, begin) = (form.percent.unwrap_or(100.0), form.begin_percent.unwrap_or(0.0));
        check_percent(&format!("{key}.percent"), percent)?;
        if !(0.0..=100.0).contains(&begin) || begin + percent > 100.0 {
            let problem = "write 0 to 100, and together with `percent` no more than 100";
            return Err(wrong(format!("{key}.begin_percent"), problem));
        }
        let start = part_of(chunks.len(), begin);
        let end = part_of(chunks.len(), begin + percent);
        if start == end {
            return Err(wrong(
                format!("{key}.percent"),
                "a checkpoint replaces at least one chunk",
            ));
        }
        checkpointed = chunks[start].start..chunks[end - 1].end;
        let count = form.count.unwrap_or(1);
        checkpoints.extend((0..count).map(|_| replace(start..end, &mut file)));
    }
    Ok(Changes { timed, checkpoints, checkpointed })
}

/// A part of a number of chunks.
fn part_of(chunks: usize, percent: f64) -> usize {
    (chunks as f64 * percent / 100.0).round() as usize
}

impl Changes {
    /// The number of versions that the table has at the start.
    pub(super) fn versions_at_start(&self) -> usize {
        1 + self.timed.iter().filter(|(at, _)| *at == Time(0)).count()
    }

    /// Whether there are changes after the start.
    pub(super) fn changes_during_run(&self) -> bool {
        !self.checkpoints.is_empty() || self.timed.iter().any(|(at, _)| *at > Time(0))
    }

    /// The stream of the checkpoints. Each is a scan in order of all columns of the chunks that it replaces.
    pub(super) fn checkpoint_stream(
        &self,
        form: &CheckpointsForm,
        table: &NamedTable,
        clock: Option<Hertz>,
    ) -> Result<Stream, SpecError> {
        let key = format!("table.{}.checkpoints", table.name);
        let label = format!("checkpoint of {}", table.name);
        let groups = table.groups.clone().map(GroupIndex::from_usize).collect();
        let scan = Query::scan(&label, table.position, groups, self.checkpointed.clone());
        let scan = Query {
            order: Order::InOrder,
            cost: cost(&key, form.cost, (table.rows, table.table.rows_at_start()), clock)?,
            think_ns: form.every.0,
            ..scan
        };
        let checkpoints = self.checkpoints.iter().enumerate();
        let queries = checkpoints.map(|(number, change)| Query {
            think_ns: if number == 0 { 0 } else { scan.think_ns },
            change: Some(change.clone()),
            ..scan.clone()
        });
        Ok(Stream { start: Time(form.start.0), queries: queries.collect(), while_others_run: true })
    }
}
