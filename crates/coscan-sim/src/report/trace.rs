//! Intervals of reading, residence and work, from the events of a run.

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, LoadId, PageIndex, Time, WorkerIndex};

use crate::outcome::{EventKind, Outcome};
use crate::workload::Workload;

/// The intervals of the chunks of the tables, each list in the order of their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Intervals during which a load was in flight. The query is the one that it was for.
    pub(crate) loads: Vec<Interval>,
    /// Intervals during which some page of a chunk was in the pool.
    pub(crate) kept: Vec<Interval>,
    /// Intervals during which a query worked on a chunk.
    pub(crate) uses: Vec<Interval>,
}

/// An interval of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    /// The table, as a position in [`Workload::tables`].
    pub(crate) table: usize,
    /// The chunk.
    pub(crate) chunk: ChunkIndex,
    /// The query, as a position in [`Outcome::queries`], if it was for one.
    pub(crate) query: Option<usize>,
    /// The time when it began.
    pub(crate) from: Time,
    /// The time when it ended, or the end of the run.
    pub(crate) to: Time,
}

impl Interval {
    /// The begin and end, in seconds.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        (seconds(self.from), seconds(self.to))
    }
}

/// A time in seconds.
pub(crate) fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

/// The intervals that have begun, by the events that end them.
#[derive(Default)]
struct Open {
    loads: BTreeMap<LoadId, Interval>,
    uses: BTreeMap<(usize, WorkerIndex), Interval>,
    kept: BTreeMap<(usize, ChunkIndex), Held>,
}

/// A chunk with a page in the pool.
struct Held {
    pages: usize,
    from: Time,
}

impl Trace {
    /// The trace of a run whose timeline was recorded. For other runs it is empty.
    pub(crate) fn of(workload: &Workload, outcome: &Outcome) -> Trace {
        let (mut trace, mut open) = (Trace::default(), Open::default());
        for step in &outcome.timeline {
            trace.pass(workload, &mut open, step.at, &step.what);
        }
        let end = Time(outcome.total_ns);
        let kept = open.kept.into_iter().map(|((table, chunk), held)| Interval {
            table,
            chunk,
            query: None,
            from: held.from,
            to: end,
        });
        trace.kept.extend(kept);
        trace.loads.extend(open.loads.into_values().map(|load| Interval { to: end, ..load }));
        trace
    }

    fn pass(&mut self, workload: &Workload, open: &mut Open, at: Time, what: &EventKind) {
        match *what {
            EventKind::LoadStarted { load, query, table, chunk, .. } => {
                let started = Interval { table, chunk, query: Some(query), from: at, to: at };
                open.loads.insert(load, started);
            }
            EventKind::LoadEnded { load, .. } => {
                let load = open.loads.remove(&load);
                self.loads.extend(load.map(|load| Interval { to: at, ..load }));
            }
            EventKind::PageArrived { table, page, read: true, .. } => {
                for &chunk in chunks_of(workload, table, page) {
                    let held = open.kept.entry((table, chunk));
                    held.or_insert(Held { pages: 0, from: at }).pages += 1;
                }
            }
            EventKind::Evicted { table, page } => self.evicted(workload, open, at, (table, page)),
            EventKind::Delivered { query, worker, chunk } => {
                let table = table_of(workload, query);
                let begun = Interval { table, chunk, query: Some(query), from: at, to: at };
                open.uses.insert((query, worker), begun);
            }
            EventKind::Released { query, worker, .. } => {
                let work = open.uses.remove(&(query, worker));
                self.uses.extend(work.map(|work| Interval { to: at, ..work }));
            }
            EventKind::Started { .. }
            | EventKind::Ended { .. }
            | EventKind::Waiting { .. }
            | EventKind::PageArrived { .. }
            | EventKind::Pruned { .. }
            | EventKind::TableChanged(_)
            | EventKind::PoolChanged { .. } => {}
        }
    }

    fn evicted(
        &mut self,
        workload: &Workload,
        open: &mut Open,
        at: Time,
        (table, page): (usize, PageIndex),
    ) {
        for &chunk in chunks_of(workload, table, page) {
            let Some(held) = open.kept.get_mut(&(table, chunk)) else { continue };
            held.pages -= 1;
            if held.pages == 0 {
                let from = held.from;
                open.kept.remove(&(table, chunk));
                self.kept.push(Interval { table, chunk, query: None, from, to: at });
            }
        }
    }
}

fn chunks_of(workload: &Workload, table: usize, page: PageIndex) -> &[ChunkIndex] {
    workload.tables[table].layout.chunks_of(page)
}

/// The table of the query at this position of [`Outcome::queries`].
pub(crate) fn table_of(workload: &Workload, query: usize) -> usize {
    workload.queries().nth(query).map_or(0, |query| query.table)
}
