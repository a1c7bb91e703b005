//! Reports on the activity, for observers. Scans and chunks are looked at a few at a time, so the lock is not held for
//! all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_core::{Action, PageId, PoolMap, PoolMapBuilder, ScanId, TableId, Time};

use super::handle::Driver;
use super::running_scan::RunningScan;
use super::state::{State, Totals};
use crate::observe::events::{EventKind, Events};
use crate::observe::metrics::ManagerReport;
use crate::observe::scan_report::{ScanReport, ScanWait};
use crate::observe::watching::{ScanBytes, TableReport};
use crate::tables::registry::TableNames;

/// The number of scans that are reported on while the lock is held once.
const STEP_SCANS: usize = 16;

/// The number of slices (chunks times column groups) that a map is made of while the lock is held once.
const STEP_SLICES: usize = 1024;

/// The number of pages that are looked at while the lock is held once.
const STEP_PAGES: usize = 1024;

impl Driver {
    pub(crate) fn report(self: &Arc<Self>) -> ManagerReport {
        let slices = self.slices_of_all();
        let (state, usage) = self.call_then(
            |state, now| state.collect_credit(now), // What nobody holds is the pool's.
            |state, ()| (StateReport::of(state), self.memory.usage()),
        );
        ManagerReport {
            age: Duration::from_nanos(self.now().0),
            scans: state.scans,
            loads_in_flight: state.loads_in_flight,
            loads_started: state.totals.loads,
            chunks_delivered: state.totals.chunks_delivered,
            bytes_read: state.totals.bytes_read,
            bytes_delivered: state.totals.bytes_delivered,
            decisions: state.totals.decisions,
            decision_time: Duration::from_nanos(state.totals.decision_ns),
            chunks_in_use: state.chunks_in_use,
            slices_decoded: slices.decoded.load(Ordering::Relaxed),
            slices_reused: slices.reused.load(Ordering::Relaxed),
            pool_held_bytes: state.pool_held_bytes,
            pool_limit_bytes: state.pool_limit_bytes,
            decoded_bytes: usage.decoded_bytes,
            decoded_idle_bytes: self.decoded.idle_bytes(),
            operator_bytes: usage.operator_bytes,
            metadata_bytes: usage.metadata_bytes,
            held_bytes_max: self.memory.held_bytes_max(),
            memory_bytes: self.memory.budget_bytes(),
        }
    }

    pub(crate) fn scan_reports(self: &Arc<Self>) -> Vec<ScanReport> {
        let scans: Vec<_> = self.call(|state, _| state.scans.keys().copied().collect());
        let mut reports = Vec::with_capacity(scans.len());
        for scans in scans.chunks(STEP_SCANS) {
            let state = self.lock();
            let now = self.now();
            reports.extend(scans.iter().filter_map(|&scan| state.scan_report(scan, now)));
        }
        reports
    }

    pub(crate) fn name_table(&self, table: TableId, name: &Arc<str>) {
        self.lock().registry.name_table(table, name);
    }

    pub(crate) fn table_reports(self: &Arc<Self>) -> Vec<TableReport> {
        self.call(|state, _| state.table_reports())
    }

    pub(crate) fn pool_map(&self, table: TableId, bins_max: usize) -> Option<PoolMap> {
        let mut survey = PoolMapBuilder::new(self.lock().core.state(), table, bins_max)?;
        loop {
            let goes_on = survey.step(self.lock().core.state(), STEP_SLICES);
            if !goes_on {
                return Some(survey.into_map());
            }
            // Threads that wait for the lock get it now.
            std::thread::yield_now();
        }
    }

    /// The bytes that one more scan would read of these pages.
    pub(crate) fn scan_bytes(&self, pages: &[PageId]) -> ScanBytes {
        let mut bytes = ScanBytes::default();
        for pages in pages.chunks(STEP_PAGES) {
            let owned = self.lock();
            if owned.is_broken() {
                break; // After a panic pages have no ids.
            }
            let state = owned.core.state();
            for &page in pages {
                let is_read_anyway = !state.is_cold(page) || !state.is_unneeded(page);
                let counted = if is_read_anyway { &mut bytes.shared } else { &mut bytes.unshared };
                *counted += state.bytes_of(page);
            }
        }
        bytes
    }

    pub(crate) fn subscribe(&self, capacity: usize) -> Events {
        self.lock().taps.add(capacity)
    }
}

impl State {
    fn table_reports(&self) -> Vec<TableReport> {
        let state = self.core.state();
        let known = self.registry.names().filter(|(id, _)| state.knows(*id));
        let report = |(id, names): (TableId, &TableNames)| {
            let table = state.table(id);
            TableReport {
                id,
                name: Arc::clone(&names.table),
                groups: Arc::clone(&names.groups),
                chunks: table.chunk_count(),
                rows: table.row_count(),
                scans: table.scans().len(),
            }
        };
        known.map(report).collect()
    }

    /// Reports a decision to observers.
    pub(super) fn note_event(&mut self, action: &Action) {
        let state = self.core.state();
        let now = state.now();
        let kind = || match *action {
            Action::Load { load, scan, table, chunk, ref pages, urgent } => {
                Some(EventKind::LoadStarted {
                    load,
                    scan,
                    table,
                    chunk,
                    bytes: pages.iter().map(|&page| state.bytes_of(page)).sum(),
                    scans: pages.first().map_or(0, |&page| state.readers(page).len()),
                    is_urgent: urgent,
                })
            }
            Action::Deliver { scan, worker, chunk } => {
                Some(EventKind::ChunkDelivered { scan, worker, chunk })
            }
            Action::Evict { page } => Some(EventKind::PageEvicted {
                place: state.slices_of(page).first().map(|slice| (slice.table, slice.chunk)),
                bytes: state.bytes_of(page),
            }),
            Action::Fail { scan, .. } => Some(EventKind::ScanFailed { scan }),
            Action::Escalate { .. }
            | Action::Finish { .. }
            | Action::NoSpace { .. }
            | Action::Unneeded { .. }
            | Action::GrantMemory { .. } => None,
        };
        self.taps.send_if(now, kind);
    }

    fn scan_report(&self, id: ScanId, now: Time) -> Option<ScanReport> {
        let running = self.scans.get(&id).filter(|running| !running.has_ended)?;
        let scan = self.core.state().scan(id)?;
        let (waits_for, since) = self.wait_of(id, running, now);
        let name = running.label.table.clone();
        Some(ScanReport {
            id,
            query: running.label.query.clone(),
            table: scan.table(),
            table_name: name.unwrap_or_else(|| self.registry.name_of(scan.table())),
            columns: Arc::clone(&running.column_names),
            class: self.core.priority_of(id),
            order: scan.order(),
            is_sparse: scan.is_sparse(),
            weight: scan.weight(),
            workers: running.activity.workers(),
            workers_busy: scan.busy_workers(),
            age: Duration::from_nanos(now.since(running.started)),
            metrics: running.counters.with_chunks(scan.report()),
            chunks_left: scan.needed().len(),
            chunks_ready: scan.available().len(),
            waits_for,
            waiting: Duration::from_nanos(now.since(since)),
        })
    }

    /// The reason why a scan waits, and since when.
    fn wait_of(&self, id: ScanId, running: &RunningScan, now: Time) -> (ScanWait, Time) {
        if running.failed.is_some() {
            return (ScanWait::Failed, now);
        }
        if let Some(wait) = self.core.wait_of(id) {
            return (wait.on.into(), wait.since);
        }
        if let Some(since) = running.activity.memory_since() {
            return (ScanWait::Memory, since);
        }
        match running.activity.idle_since(now) {
            Some(since) => (ScanWait::Consumer, since.max(running.started)),
            None => (ScanWait::Nothing, now),
        }
    }
}

/// The part of a report that comes from the state.
struct StateReport {
    scans: usize,
    loads_in_flight: usize,
    chunks_in_use: usize,
    pool_held_bytes: u64,
    pool_limit_bytes: u64,
    totals: Totals,
}

impl StateReport {
    fn of(state: &State) -> Self {
        Self {
            scans: state.running(),
            loads_in_flight: state.core.loads_in_flight(),
            chunks_in_use: state.workers.chunks_in_use(),
            pool_held_bytes: state.core.state().held_bytes(),
            pool_limit_bytes: state.core.state().pool_bytes(),
            totals: state.totals,
        }
    }
}
