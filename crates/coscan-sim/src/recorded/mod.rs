//! Recorded runs of the real engine, turned into a workload and a machine, to simulate the same queries under another
//! policy.
//!
//! Tables, the columns, rows, order and workers of each scan, the limits of the manager, and the sizes of the pool are
//! taken from the decision log as they are. The rest is estimated:
//!
//! - **Queries.** Each scan is one. A scan that starts soon after the end of another follows it in a stream, as users
//!   send one query after another; the time between is think time. The others start when they did.
//! - **Work.** A worker works on a chunk from its delivery until it asks for the next one or is paused. While more
//!   workers worked than there were cores, they shared the cores equally. Each scan has its own average per row.
//! - **Disk.** A load takes a latency and a time for each byte, see `disk`.
//! - **Ends.** A scan that ended before it was handed everything is cancelled as long after its start as it was.
//!   Chunks that were pruned while it ran are not needed from the start. Pages that could not be read are readable.
//! - **Tables.** Chunks that were added or removed during the run exist all the time; pages that several tables list are
//!   separate pages of each.
//!
//! Not modelled are decoded columns, which made later work on them cheap, and pages that the engine releases before its
//! work on the chunk ends.

mod disk;
mod history;
mod memory;
mod tables;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coscan_core::log::Log;
use coscan_core::{Index, Layout, PageIndex, Time};

use crate::machine::Machine;
use crate::spec::{Case, Spec};
use crate::table::Table;
use crate::workload::{Cost, Query, Stream, Workload};
use history::{History, PastScan};
use tables::PastPage;

/// The time in nanoseconds within which a scan that starts after the end of another one follows it: 50 ms, in which the
/// real engine finishes a query, and plans the next one.
const FOLLOWS_WITHIN_NS: u64 = 50_000_000;

/// The estimates, in words for reports.
const ESTIMATED: &str = "The times of disk and processors, and which query follows which, are estimated from the log. \
    Columns kept decoded are not simulated.";

/// The workload and machine of a log, as far as they are known.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The tables and queries.
    pub workload: Workload,
    /// The disk, the cores and the limits.
    pub machine: Machine,
}

impl Recorded {
    /// Reads a workload and a machine from a log.
    ///
    /// # Panics
    /// If the log names a table, column group, page or scan that it did not introduce. A log that was recorded does
    /// not, whether it still replays or not.
    #[must_use]
    pub fn from_log(log: &Log) -> Self {
        let history = History::of(log);
        let cores = u32::try_from(log.header.cores.max(1)).unwrap_or(u32::MAX);
        let disk = disk::estimate(history.loads.values());
        let machine = Machine { config: log.header.config, ..Machine::new(disk, cores) };
        let layouts = history.tables.layouts();
        let tables = layouts.iter().enumerate();
        let tables = tables
            .map(|(id, (layout, _))| Table::at_rest(format!("table {id}"), Arc::clone(layout)));
        let workload = Workload {
            tables: tables.collect(),
            streams: streams(&history, &layouts),
            pool_bytes: log.header.config.pool_bytes,
            pool_changes: history.pool_changes,
            table_changes: Vec::new(),
        };
        Self { workload, machine }
    }

    /// The recorded run as an experiment of one case, which is run and reported like any other.
    #[must_use]
    pub fn spec(self, name: &str) -> Spec {
        let Self { workload, machine } = self;
        let queries: usize = workload.streams.iter().map(|stream| stream.queries.len()).sum();
        let parameters = [
            ("streams", format!("{}, {queries} queries in all", workload.streams.len())),
            ("pool", format!("{} bytes", workload.pool_bytes)),
            ("cores", machine.cores.to_string()),
            ("disk", format!("{:?}", machine.disk)),
        ];
        Spec {
            name: name.to_owned(),
            title: "A recorded run".to_owned(),
            source: String::new(),
            assumed: Vec::new(),
            fitted: Vec::new(),
            remarks: vec![ESTIMATED.to_owned()],
            parameters: parameters.map(|(part, text)| (part.to_owned(), text)).into(),
            sweeps: Vec::new(),
            cases: vec![Case::known(workload, machine)],
            paper: Vec::new(),
            claims: Vec::new(),
        }
    }
}

/// A table, and the page of the table for each page of the run.
type Numbered = (Arc<Layout>, BTreeMap<PastPage, PageIndex>);

/// The scans in the order in which they started, each in the stream of the one that it follows.
fn streams(history: &History, tables: &[Numbered]) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    // The time when the last query of each stream ended; `None` if it did not.
    let mut ends: Vec<Option<Time>> = Vec::new();
    for scan in history.scans.values() {
        let follows =
            |end: Time| end <= scan.started && scan.started.since(end) <= FOLLOWS_WITHIN_NS;
        let ended = ends.iter().enumerate().filter_map(|(stream, end)| Some(((*end)?, stream)));
        let before = ended.filter(|&(end, _)| follows(end)).max();
        let query = query(tables, scan, before.map_or(0, |(end, _)| scan.started.since(end)));
        match before {
            Some((_, stream)) => {
                streams[stream].queries.push(query);
                ends[stream] = scan.ended;
            }
            None => {
                streams.push(Stream {
                    start: scan.started,
                    queries: vec![query],
                    ..Stream::default()
                });
                ends.push(scan.ended);
            }
        }
    }
    streams
}

fn query(tables: &[Numbered], scan: &PastScan, think_ns: u64) -> Query {
    let table = scan.spec.table.as_usize();
    let (layout, numbers) = &tables[table];
    let rows = kept_rows(layout, scan);
    let percent = 100 * rows.iter().map(|rows| rows.end - rows.start).sum::<u64>()
        / layout.row_count().max(1);
    let row_ps = scan.work_ps.checked_div(u128::from(scan.rows_handed)).unwrap_or(0);
    let cancelled = scan.ended.filter(|_| !scan.needed.is_empty());
    Query {
        label: format!("table {table}, {} column groups, {percent:02} %", scan.spec.groups.len()),
        table,
        groups: scan.spec.groups.clone(),
        version: None,
        rows,
        selected: scan.selected.as_ref().map(|pages| {
            let mut pages: Vec<_> = pages.iter().filter_map(|page| numbers.get(page)).collect();
            pages.sort_unstable();
            pages.into_iter().copied().collect()
        }),
        order: scan.spec.order,
        workers: scan.spec.workers,
        weight: scan.spec.weight,
        computation: None, // What was pruned for results is not needed here either.
        cost: Cost { row_ps: u64::try_from(row_ps).unwrap_or(u64::MAX), byte_ps: 0 },
        think_ns,
        cancel_after_ns: cancelled.map(|ended| ended.since(scan.started)),
        change: None,
    }
}

/// The rows of the chunks that a scan needed, without those that were pruned.
fn kept_rows(layout: &Layout, scan: &PastScan) -> Vec<Range<u64>> {
    let mut kept: Vec<Range<u64>> = Vec::new();
    for chunk in scan.chunks.iter().filter(|&chunk| !scan.pruned.contains(chunk)) {
        let Range { start, end } = layout.rows(chunk);
        match kept.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => kept.push(start..end),
        }
    }
    kept
}
