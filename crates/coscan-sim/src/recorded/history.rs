//! The tables, scans and loads of a decision log.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::log::{Command, Entry, Log, Reply};
use coscan_core::{
    Action, ChunkIndex, ChunkSpec, Index, IndexSet, LoadId, PageId, ScanId, ScanSpec, Time,
    WorkerIndex,
};

use super::memory::PastMemory;
use super::tables::{PastPage, PastTables};

/// A recorded run, read from its log.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) tables: PastTables,
    /// The scans in the order in which they started.
    pub(super) scans: BTreeMap<ScanId, PastScan>,
    /// The loads in the order in which they were decided.
    pub(super) loads: BTreeMap<LoadId, PastLoad>,
    /// The limits of the pool in bytes, and the times from which they hold.
    pub(super) pool_changes: Vec<(Time, u64)>,
    memory: PastMemory,
    cores: u128,
    now: Time,
    /// The command whose reply has not been read yet.
    asked: Option<PendingCommand>,
    /// Workers at work, and the chunk that each was handed last.
    working: BTreeMap<(ScanId, WorkerIndex), ChunkIndex>,
    /// Loads in flight.
    loading: BTreeSet<LoadId>,
}

/// A command that cannot be interpreted without its reply.
#[derive(Debug)]
enum PendingCommand {
    Pages(Vec<u64>),
    Layout(Vec<u64>, usize, Vec<ChunkSpec>),
    Chunks(usize, Vec<ChunkSpec>),
    Scan(ScanSpec),
    /// A command that hands out memory.
    Memory,
}

/// A recorded scan.
#[derive(Debug)]
pub(super) struct PastScan {
    pub(super) spec: ScanSpec,
    /// The pages that it named, if it named any.
    pub(super) selected: Option<Vec<PastPage>>,
    /// Chunks that it was registered for.
    pub(super) chunks: IndexSet<ChunkIndex>,
    pub(super) started: Time,
    /// The time when it ended; `None` if it still ran at the end of the log.
    pub(super) ended: Option<Time>,
    /// The chunks that it was neither handed nor pruned of.
    pub(super) needed: IndexSet<ChunkIndex>,
    /// Chunks that were pruned before it was handed them.
    pub(super) pruned: IndexSet<ChunkIndex>,
    /// Rows of the chunks that it was handed.
    pub(super) rows_handed: u64,
    /// Core picoseconds of its work.
    pub(super) work_ps: u128,
}

/// A recorded load.
#[derive(Debug)]
pub(super) struct PastLoad {
    pub(super) bytes: u64,
    /// Bytes of the longest run of neighbouring pages: its largest request.
    pub(super) run_bytes: u64,
    pub(super) started: Time,
    /// The time when its last page arrived; `None` if one failed, or was still being read at the end of the log.
    pub(super) ended: Option<Time>,
    /// The integral over its time of the number of loads in flight, itself among them, in nanoseconds.
    pub(super) shared_ns: u128,
    pages_left: usize,
    has_failed: bool,
}

impl History {
    pub(super) fn of(log: &Log) -> Self {
        let cores = log.header.cores.max(1) as u128;
        let memory = PastMemory::new(log.header.config.pool_bytes);
        let mut history = Self { cores, memory, ..Self::default() };
        for entry in &log.entries {
            match entry {
                Entry::Command(command) => {
                    history.pass_time(command.now());
                    history.command(command);
                }
                Entry::Reply(reply) => history.answered(reply),
                Entry::Action(action) => history.act(action),
                Entry::Settled { .. } => {}
            }
            if let Some(pool_bytes) = history.memory.new_pool_bytes() {
                history.pool_changes.push((history.now, pool_bytes));
            }
        }
        history
    }

    /// Adds the time since the last command to the workers at work and the loads in flight.
    fn pass_time(&mut self, now: Option<Time>) {
        let Some(now) = now else { return };
        let passed_ns = u128::from(now.since(self.now));
        self.now = self.now.max(now);
        let workers = self.working.len() as u128;
        for (scan, _) in self.working.keys() {
            let scan = self.scans.get_mut(scan).expect("who works has a scan");
            scan.work_ps += 1_000 * passed_ns * workers.min(self.cores) / workers;
        }
        for load in &self.loading {
            let load = self.loads.get_mut(load).expect("a load in flight was decided");
            load.shared_ns += passed_ns * self.loading.len() as u128;
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::AddPages { bytes } => self.asked = Some(PendingCommand::Pages(bytes.clone())),
            Command::RegisterTable { group_count, .. } => self.tables.add_table(*group_count),
            Command::RegisterLayout { layout, .. } => {
                let chunks = layout.chunk_specs(PageId(0));
                self.asked =
                    Some(PendingCommand::Layout(layout.page_bytes(), layout.group_count(), chunks));
            }
            Command::AppendChunks { table, chunks } => {
                self.asked = Some(PendingCommand::Chunks(table.as_usize(), chunks.clone()));
            }
            Command::StartScan { spec, .. } | Command::StartRemoteScan { spec, .. } => {
                self.asked = Some(PendingCommand::Scan(spec.clone()))
            }
            Command::ExtendScan { scan, chunks, .. } => self.extend(*scan, chunks),
            Command::RequestChunk { scan, worker, .. }
            | Command::PauseWorker { scan, worker, .. }
            | Command::WithdrawWorker { scan, worker, .. } => {
                self.working.remove(&(*scan, *worker));
            }
            Command::PruneScan { scan, chunks, .. } => self.prune(*scan, chunks),
            Command::CancelScan { scan, .. } => {
                self.working.retain(|(working, _), _| working != scan);
                if let Some(scan) = self.scans.get_mut(scan) {
                    scan.ended.get_or_insert(self.now);
                }
            }
            Command::SetPoolBytes { now, pool_bytes } => {
                self.pool_changes.push((*now, *pool_bytes));
            }
            Command::SetMemoryLimits { limits, .. } => self.memory.limits = Some(*limits),
            Command::TakeMemory { .. } | Command::CoverOverdraft { .. } => {
                self.asked = Some(PendingCommand::Memory);
            }
            Command::ReturnMemory { bytes, .. } => {
                let left_bytes = self.memory.handed_out_bytes.saturating_sub(*bytes);
                self.memory.handed_out_bytes = left_bytes; // A log may be cut.
            }
            Command::PageLoaded { load, .. } => self.page_reported(*load, true),
            Command::PageFailed { load, .. } => self.page_reported(*load, false),
            Command::GrowPool { .. }
            | Command::RequestMemory { .. }
            | Command::WithdrawMemoryRequest { .. }
            | Command::RemoveTable { .. }
            | Command::RemovePages { .. }
            | Command::RetireChunks { .. }
            | Command::RegisterInterest { .. }
            | Command::SetSource { .. }
            | Command::OfferPage { .. }
            | Command::ReleaseChunk { .. }
            | Command::EvictUnneeded { .. }
            | Command::EvictIdle { .. }
            | Command::SliceDecoded { .. }
            | Command::SliceDropped { .. }
            | Command::HandleTimeout { .. } => {}
        }
    }

    /// Processes the reply to the previous command.
    fn answered(&mut self, reply: &Reply) {
        match (self.asked.take(), reply) {
            (Some(PendingCommand::Pages(bytes)), Reply::Pages(first)) => {
                self.tables.add_pages(*first, &bytes);
            }
            (
                Some(PendingCommand::Layout(bytes, groups, mut chunks)),
                Reply::Layout(table, first),
            ) => {
                self.tables.add_pages(*first, &bytes);
                self.tables.add_table(groups);
                let pages = chunks.iter_mut().flat_map(|chunk| chunk.slices.iter_mut().flatten());
                pages.for_each(|page| page.0 += first.0);
                let indexes: Vec<_> = (0..chunks.len()).map(ChunkIndex::from_usize).collect();
                self.tables.add_chunks(table.as_usize(), &chunks, &indexes);
            }
            (Some(PendingCommand::Chunks(table, chunks)), Reply::Chunks(indexes)) => {
                self.tables.add_chunks(table, &chunks, indexes);
            }
            (Some(PendingCommand::Scan(spec)), Reply::Scan(id)) => self.start(*id, spec),
            (Some(PendingCommand::Memory), Reply::Bytes(bytes)) => {
                self.memory.handed_out_bytes += bytes;
            }
            _ => {}
        }
    }

    /// Extends a scan by chunks that the table has now. A recorded run names no others.
    fn extend(&mut self, scan: ScanId, chunks: &[std::ops::Range<ChunkIndex>]) {
        let Some(scan) = self.scans.get_mut(&scan) else { return };
        for chunk in self.tables.chunks(scan.spec.table.as_usize(), chunks) {
            scan.chunks.insert(chunk);
            scan.needed.insert(chunk);
        }
    }

    fn start(&mut self, id: ScanId, spec: ScanSpec) {
        let chunks: IndexSet<_> = self.tables.chunks(spec.table.as_usize(), &spec.chunks).collect();
        let pages = spec.pages.as_ref();
        let selected = pages.map(|pages| pages.iter().map(|&id| self.tables.page(id)).collect());
        let scan = PastScan {
            spec,
            selected,
            started: self.now,
            ended: None,
            needed: chunks.clone(),
            chunks,
            pruned: IndexSet::new(),
            rows_handed: 0,
            work_ps: 0,
        };
        self.scans.insert(id, scan);
    }

    fn prune(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        let Some(scan) = self.scans.get_mut(&scan) else { return };
        for &chunk in chunks {
            let chunk = self.tables.chunk(scan.spec.table.as_usize(), chunk);
            if scan.needed.remove(chunk) {
                scan.pruned.insert(chunk);
            }
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Load { load, pages, .. } => self.load(*load, pages),
            Action::Deliver { scan: id, worker, chunk } => {
                let scan = self.scans.get_mut(id).expect("who is handed a chunk has started");
                let table = scan.spec.table.as_usize();
                let chunk = self.tables.chunk(table, *chunk);
                self.working.insert((*id, *worker), chunk);
                scan.needed.remove(chunk);
                scan.rows_handed += self.tables.rows(table, chunk);
            }
            Action::GrantMemory { bytes, .. } => self.memory.handed_out_bytes += bytes,
            Action::Escalate { .. }
            | Action::Evict { .. }
            | Action::Finish { .. }
            | Action::Unneeded { .. }
            | Action::NoSpace { .. }
            | Action::Fail { .. } => {}
        }
    }

    fn load(&mut self, id: LoadId, pages: &[PageId]) {
        let mut sorted = pages.to_vec();
        sorted.sort_unstable();
        let runs = sorted.chunk_by(|a, b| a.0 + 1 == b.0);
        let runs = runs.map(|run| run.iter().map(|&page| self.tables.bytes_of(page)).sum::<u64>());
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
