//! What a decision log tells about tables, scans and loads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use coscan_core::log::{Command, Entry, Log, Reply};
use coscan_core::{
    Action, ChunkIndex, Index, IndexSet, Layout, LoadId, PageIndex, ScanId, ScanSpec, TableId,
    Time, WorkerIndex,
};

/// A recorded run, read from its log.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By number of the table.
    pub(super) layouts: Vec<Arc<Layout>>,
    /// In the order in which they started.
    pub(super) scans: BTreeMap<ScanId, PastScan>,
    /// In the order in which they were decided.
    pub(super) loads: BTreeMap<LoadId, PastLoad>,
    /// What the pool was allowed, and from when on.
    pub(super) pool_changes: Vec<(Time, u64)>,
    cores: u128,
    now: Time,
    /// Asked for, not answered yet.
    starting: Option<ScanSpec>,
    /// Workers at work.
    working: BTreeSet<(ScanId, WorkerIndex)>,
    /// Loads under way.
    loading: BTreeSet<LoadId>,
}

/// A recorded scan.
#[derive(Debug)]
pub(super) struct PastScan {
    pub(super) spec: ScanSpec,
    pub(super) started: Time,
    /// `None` if it still ran at the end of the log.
    pub(super) ended: Option<Time>,
    /// Chunks that it was not handed, and did not give up.
    pub(super) needed: IndexSet<ChunkIndex>,
    /// Chunks that it gave up before it was handed them.
    pub(super) given_up: IndexSet<ChunkIndex>,
    /// Rows that it wanted of the chunks that it was handed.
    pub(super) rows_handed: u64,
    /// Core picoseconds of its work.
    pub(super) work_ps: u128,
}

/// A recorded load.
#[derive(Debug)]
pub(super) struct PastLoad {
    pub(super) bytes: u64,
    /// Bytes of the longest run of pages that lie next to each other: its largest request.
    pub(super) run_bytes: u64,
    pub(super) started: Time,
    /// When its last page had arrived; `None` if one failed, or was under way at the end of the log.
    pub(super) ended: Option<Time>,
    /// Nanoseconds times the loads that were under way then, itself among them.
    pub(super) shared_ns: u128,
    pages_left: usize,
    has_failed: bool,
}

impl History {
    pub(super) fn of(log: &Log) -> Self {
        let cores = log.header.cores.max(1) as u128;
        let mut history = Self { cores, ..Self::default() };
        for entry in &log.entries {
            match entry {
                Entry::Command(command) => {
                    history.pass_time(command.now());
                    history.command(command);
                }
                Entry::Reply(Reply::Scan(id)) => history.start(*id),
                Entry::Action(action) => history.act(action),
                Entry::Reply(_) | Entry::Settled { .. } => {}
            }
        }
        history
    }

    /// Shares the time since the last command out among those who worked and loads under way.
    fn pass_time(&mut self, now: Option<Time>) {
        let Some(now) = now else { return };
        let passed_ns = u128::from(now.since(self.now));
        self.now = self.now.max(now);
        let workers = self.working.len() as u128;
        for (scan, _) in &self.working {
            let scan = self.scans.get_mut(scan).expect("who works has a scan");
            scan.work_ps += 1_000 * passed_ns * workers.min(self.cores) / workers;
        }
        for load in &self.loading {
            let load = self.loads.get_mut(load).expect("a load under way was decided");
            load.shared_ns += passed_ns * self.loading.len() as u128;
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::RegisterTable { layout } => self.layouts.push(Arc::clone(layout)),
            Command::StartScan { spec, .. } => self.starting = Some(spec.clone()),
            Command::ExtendScan { scan, rows, .. } => self.extend(*scan, rows),
            Command::RequestChunk { scan, worker, .. }
            | Command::PauseWorker { scan, worker, .. } => {
                self.working.remove(&(*scan, *worker));
            }
            Command::NarrowScan { scan, unwanted, .. } => self.narrow(*scan, unwanted),
            Command::CancelScan { scan, .. } => {
                self.working.retain(|(working, _)| working != scan);
                if let Some(scan) = self.scans.get_mut(scan) {
                    scan.ended.get_or_insert(self.now);
                }
            }
            Command::SetPoolBytes { now, pool_bytes } => {
                self.pool_changes.push((*now, *pool_bytes));
            }
            Command::PageLoaded { load, .. } => self.page_reported(*load, true),
            Command::PageFailed { load, .. } => self.page_reported(*load, false),
            Command::RemoveTable { .. }
            | Command::ReleaseChunk { .. }
            | Command::EvictUnwanted { .. }
            | Command::EvictIdle { .. }
            | Command::SliceDecoded { .. }
            | Command::SliceDropped { .. }
            | Command::HandleTimeout { .. } => {}
        }
    }

    fn start(&mut self, id: ScanId) {
        let spec = self.starting.take().expect("a scan that starts was asked for");
        let layout = &self.layouts[spec.table.as_usize()];
        let needed = spec.rows.iter().flat_map(|rows| layout.chunks_in(rows.clone())).collect();
        let scan = PastScan {
            spec,
            started: self.now,
            ended: None,
            needed,
            given_up: IndexSet::new(),
            rows_handed: 0,
            work_ps: 0,
        };
        self.scans.insert(id, scan);
    }

    /// What was refused is asked for again: rows are added once.
    fn extend(&mut self, scan: ScanId, rows: &[Range<u64>]) {
        let Some(scan) = self.scans.get_mut(&scan) else { return };
        let layout = &self.layouts[scan.spec.table.as_usize()];
        for rows in rows.iter().cloned() {
            if scan.spec.rows.contains(&rows) {
                continue;
            }
            layout.chunks_in(rows.clone()).for_each(|chunk| {
                scan.needed.insert(chunk);
            });
            scan.spec.rows.push(rows);
        }
        scan.spec.rows.sort_unstable_by_key(|rows| rows.start);
    }

    fn narrow(&mut self, scan: ScanId, unwanted: &[ChunkIndex]) {
        let Some(scan) = self.scans.get_mut(&scan) else { return };
        for &chunk in unwanted {
            if scan.needed.remove(chunk) {
                scan.given_up.insert(chunk);
            }
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Load { load, table, pages, .. } => self.load(*load, *table, pages),
            Action::Deliver { scan: id, worker, chunk } => {
                self.working.insert((*id, *worker));
                let scan = self.scans.get_mut(id).expect("who is handed a chunk has started");
                scan.needed.remove(*chunk);
                let whole = self.layouts[scan.spec.table.as_usize()].rows(*chunk);
                for rows in &scan.spec.rows {
                    let (start, end) = (rows.start.max(whole.start), rows.end.min(whole.end));
                    scan.rows_handed += end.saturating_sub(start);
                }
            }
            Action::Hasten { .. }
            | Action::Evict { .. }
            | Action::Finish { .. }
            | Action::Fail { .. } => {}
        }
    }

    fn load(&mut self, id: LoadId, table: TableId, pages: &[PageIndex]) {
        let layout = &self.layouts[table.as_usize()];
        let mut sorted = pages.to_vec();
        sorted.sort_unstable();
        let runs = sorted.chunk_by(|a, b| a.0 + 1 == b.0);
        let runs = runs.map(|run| run.iter().map(|&page| layout.bytes_of(page)).sum::<u64>());
        let load = PastLoad {
            bytes: runs.clone().sum(),
            run_bytes: runs.max().unwrap_or(0),
            started: self.now,
            ended: None,
            shared_ns: 0,
            pages_left: pages.len(),
            has_failed: false,
        };
        self.loads.insert(id, load);
        self.loading.insert(id);
    }

    fn page_reported(&mut self, id: LoadId, read: bool) {
        let load = self.loads.get_mut(&id).expect("a page reported was asked for");
        load.pages_left -= 1;
        load.has_failed |= !read;
        if load.pages_left == 0 {
            self.loading.remove(&id);
            load.ended = Some(self.now).filter(|_| !load.has_failed);
        }
    }
}
