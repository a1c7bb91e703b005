//! Samples from a decision log, for replay in the page.

use std::collections::BTreeMap;
use std::time::Duration;

use coscan_runtime::core::log::{Command, Entry, Log, ReplayError, Reply};
use coscan_runtime::core::{Action, ActiveBufferManager, Scan, ScanId, Time};
use coscan_runtime::{ScanMetrics, ScanReport, ScanWait};

use super::sample::{LoadRow, MemoryRow, Sample, TableRow, TotalsRow, VERSION};
use super::sample_difference::WatcherState;
use super::scheduler_snapshot::{
    SCANS_MAX, SchedulerSnapshot, TABLES_MAX, bins_max, map, scan_row,
};

/// The time between two samples.
const INTERVAL_NS: u64 = 100_000_000;

/// The samples of a recorded run. A file with them as JSON lines can be replayed in the page. A log has no names, no
/// memory outside the pool and no decision times, so that these are missing.
///
/// # Errors
/// If the log does not replay.
pub fn samples_of(log: &Log) -> Result<Vec<Sample>, ReplayError> {
    let mut sampler = LogSampler::default();
    log.replay_watched(|manager, entry| sampler.see(manager, entry))?;
    Ok(sampler.samples)
}

#[derive(Default)]
struct LogSampler {
    samples: Vec<Sample>,
    watcher: WatcherState,
    totals: TotalsRow,
    bytes_delivered: u64,
    peak: u64,
    /// The loads since the last sample.
    loads: Vec<LoadRow>,
    loads_before: u64,
    started: BTreeMap<ScanId, Time>,
    /// The time of the next sample.
    next: Option<Time>,
}

impl LogSampler {
    fn see(&mut self, manager: &ActiveBufferManager, entry: &Entry) {
        let state = manager.state();
        let now = state.now();
        self.peak = self.peak.max(state.held_bytes());
        match entry {
            Entry::Command(Command::PageLoaded { page, .. }) => {
                self.totals.bytes_read += state.bytes_of(*page);
            }
            Entry::Command(Command::SliceDecoded { .. }) => self.totals.slices_decoded += 1,
            Entry::Reply(Reply::Scan(scan)) => {
                self.started.insert(*scan, now);
            }
            Entry::Action(action) => self.see_action(manager, action),
            // This is after all decisions of one moment.
            Entry::Settled { .. } if self.next.is_none_or(|next| now >= next) => {
                self.next = Some(Time(now.0 / INTERVAL_NS * INTERVAL_NS + INTERVAL_NS));
                self.take(manager);
            }
            _ => {}
        }
    }

    fn see_action(&mut self, manager: &ActiveBufferManager, action: &Action) {
        let state = manager.state();
        self.totals.decisions += 1;
        match action {
            Action::Load { scan, table, chunk, pages, .. } => {
                self.totals.loads += 1;
                self.loads.push(LoadRow {
                    seconds: seconds(state.now().0),
                    table: table.0,
                    chunk: chunk.0,
                    bytes: pages.iter().map(|&page| state.bytes_of(page)).sum(),
                    scans: pages.first().map_or(0, |&page| state.readers(page).len()),
                    scan: scan.0,
                });
            }
            Action::Deliver { scan, chunk, .. } => {
                self.totals.chunks += 1;
                if let Some(scan) = state.scan(*scan) {
                    let pages = state.pages_of(scan, *chunk).into_iter();
                    self.bytes_delivered += pages.map(|page| state.bytes_of(page)).sum::<u64>();
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, manager: &ActiveBufferManager) {
        let state = manager.state();
        self.totals.bytes_saved = self.bytes_delivered.saturating_sub(self.totals.bytes_read);
        let tables = state.tables().filter(|(_, table)| table.chunk_count() > 0).take(TABLES_MAX);
        let tables: Vec<_> = tables.collect();
        let maps = tables
            .iter()
            .filter_map(|(id, table)| state.pool_map(*id, bins_max(table.group_count())));
        let maps: Vec<_> = maps.collect();
        let mut shared_bytes = [0; 5];
        for map in &maps {
            shared_bytes.iter_mut().zip(map.shared_bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        let scans = state.scans().take(SCANS_MAX);
        let sample = Sample {
            version: VERSION,
            seconds: seconds(state.now().0),
            policy: manager.policy_name().to_owned(),
            memory: MemoryRow {
                budget: manager.config().pool_bytes,
                pool: state.held_bytes(),
                pool_limit: state.pool_bytes(),
                peak: self.peak,
                ..MemoryRow::default()
            },
            totals: self.totals,
            scan_count: state.scan_count(),
            scans: scans.map(|scan| scan_row(&self.report(manager, scan))).collect(),
            tables: Some(
                tables
                    .iter()
                    .map(|(id, table)| TableRow {
                        id: id.0,
                        name: format!("table {id}"),
                        columns: (0..table.group_count()).map(column).collect(),
                        chunks: table.chunk_count(),
                        rows: table.row_count(),
                        scans: table.scans().len(),
                    })
                    .collect(),
            ),
            shared_bytes,
            ..Sample::default()
        };
        let loads = std::mem::take(&mut self.loads);
        let count = loads.len() as u64;
        let maps = maps.iter().map(map).collect();
        let picture = SchedulerSnapshot { sample, maps, loads, loads_before: self.loads_before };
        self.loads_before += count;
        self.samples.push(self.watcher.sample(&picture));
    }

    fn report(&self, manager: &ActiveBufferManager, scan: &Scan) -> ScanReport {
        let now = manager.state().now();
        let since = |time| Duration::from_nanos(now.since(time));
        let wait = manager.wait_of(scan.id());
        ScanReport {
            id: scan.id(),
            query: None,
            table: scan.table(),
            table_name: format!("table {}", scan.table()).into(),
            columns: scan.groups().iter().map(|group| column(group.0 as usize)).collect(),
            class: manager.priority_of(scan.id()),
            order: scan.order(),
            is_sparse: scan.is_sparse(),
            weight: scan.weight(),
            workers: scan.worker_count(),
            workers_busy: scan.busy_workers(),
            age: self.started.get(&scan.id()).map_or(Duration::ZERO, |&started| since(started)),
            metrics: ScanMetrics { chunks: scan.report(), ..ScanMetrics::default() },
            chunks_left: scan.needed().len(),
            chunks_ready: scan.available().len(),
            waits_for: wait.map_or(ScanWait::Nothing, |wait| wait.on.into()),
            waiting: wait.map_or(Duration::ZERO, |wait| since(wait.since)),
        }
    }
}

fn column(group: usize) -> String {
    format!("column group {group}")
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}
