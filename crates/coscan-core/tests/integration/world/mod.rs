//! A world for the buffer manager to live in: a virtual clock, a disk and workers, and beside them a naive model that
//! keeps its own record of everything and checks the safety rules after every step.
//!
//! [`World`] drives. [`model::Model`] checks pages and scans, `memory` checks memory beside the pool, `observed` lists
//! the chunks and pages that were read, handed out and evicted, and [`table`] builds layouts in one line.

pub(crate) mod memory;
pub(crate) mod model;
mod observed;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use coscan_core::log::{Header, Log, RecordedManager};
use coscan_core::*;
use memory::MemoryModel;
use model::Model;

pub(crate) const SPACE_TIMEOUT_NS: u64 = 10_000;

/// A table of `chunks` chunks of 10 rows; each column group has one page a chunk, of this many bytes.
pub(crate) fn table(chunks: usize, group_bytes: &[u64]) -> Arc<Layout> {
    let mut builder = Layout::builder(group_bytes.len());
    for _ in 0..chunks {
        let mut slices = Vec::new();
        for (group, &bytes) in group_bytes.iter().enumerate() {
            slices.push(vec![builder.add_page(GroupIndex::from_usize(group), bytes)]);
        }
        builder.add_chunk(10, slices);
    }
    Arc::new(builder.build())
}

/// A scan of the first column group of some chunks, in any order, for one worker.
pub(crate) fn spec(table: TableId, chunks: Range<u32>) -> ScanSpec {
    ScanSpec {
        table,
        groups: vec![GroupIndex(0)],
        chunks: vec![ChunkIndex(chunks.start)..ChunkIndex(chunks.end)],
        order: Order::Any,
        workers: 1,
        weight: 1,
        pages: None,
        computation: None,
    }
}

/// The behaviour of a disk.
#[derive(Clone, Debug)]
pub(crate) enum Disk {
    /// Reads one page after another, a nanosecond per byte.
    Serial { free_at: u64 },
    /// Takes up to this long for every page, whatever the others do: pages arrive in any order.
    Scattered { random: SplitMix64, ns_max: u64 },
}

/// The behaviour of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerProfile {
    /// Nanoseconds from the start of the scan to the first request; `u64::MAX`: it never asks.
    pub first_ns: u64,
    /// Nanoseconds for a chunk.
    pub chunk_ns: u64,
    /// Whether it releases the pages as soon as it has them (it has made its own copy), or when it asks again.
    pub releases_early: bool,
    /// The number of chunks after which it asks no more until that scan has ended, as the probe side of a join does.
    pub stall: Option<(usize, ScanId)>,
}

/// A worker that asks at once, takes this long for a chunk and holds its pages meanwhile.
pub(crate) fn worker(chunk_ns: u64) -> WorkerProfile {
    WorkerProfile { first_ns: 0, chunk_ns, releases_early: false, stall: None }
}

/// A worker that never asks: its scan keeps what it needs.
pub(crate) const NEVER: WorkerProfile =
    WorkerProfile { first_ns: u64::MAX, chunk_ns: 1, releases_early: false, stall: None };

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Ask(ScanId, WorkerIndex),
    Release(ScanId, WorkerIndex),
    Arrive(LoadId, PageId),
    /// Return memory that was handed out.
    Return(u64),
}

/// The result of a finished scan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    pub report: ScanCounts,
    pub at: u64,
}

pub(crate) struct World {
    pub manager: RecordedManager,
    pub model: Model,
    pub memory: MemoryModel,
    pub now: u64,
    /// The weight of scans that start from now on.
    pub weight: u32,
    /// The computation of scans that start from now on.
    pub computation: Option<ComputationId>,
    /// The selected pages of scans that start from now on, see [`ScanSpec::pages`].
    pub pages: Option<Vec<PageId>>,
    /// The query at another server that scans that start from now on read for.
    pub remote: Option<RemoteQuery>,
    pub disk: Disk,
    pub failing: BTreeSet<PageId>,
    /// Tables that were added as a whole, and their first page.
    pub layouts: BTreeMap<TableId, (Arc<Layout>, PageId)>,
    /// If set, several events at random happen before actions are carried out; `None`: each is followed by its actions.
    pub batches: Option<SplitMix64>,
    /// The actions so far, since they were last taken.
    pub actions: Vec<Action>,
    /// The actions as text, one per line.
    pub trace: Vec<String>,
    /// Scans whose workers have all finished, in order. The world cancels them.
    pub finished: Vec<ScanId>,
    pub failed: Vec<ScanId>,
    /// Scans for other servers that found no space. The world cancels them.
    pub without_space: Vec<ScanId>,
    pub ended: BTreeMap<ScanId, Ended>,
    events: BTreeSet<(u64, u64, Event)>,
    profiles: BTreeMap<(ScanId, WorkerIndex), WorkerProfile>,
    stalled: Vec<(ScanId, WorkerIndex, ScanId)>,
    sequence: u64,
}

impl World {
    pub(crate) fn new(
        policy: Box<dyn Policy>,
        pool_bytes: u64,
        loads_in_flight_max: usize,
    ) -> Self {
        Self::with_workers(policy, pool_bytes, loads_in_flight_max, usize::MAX)
    }

    /// A world with so few processors that not all workers may be at work.
    pub(crate) fn with_workers(
        policy: Box<dyn Policy>,
        pool_bytes: u64,
        loads_in_flight_max: usize,
        active_workers_max: usize,
    ) -> Self {
        let config = Config {
            pool_bytes,
            loads_in_flight_max,
            request_cost_bytes: 0,
            space_timeout_ns: SPACE_TIMEOUT_NS,
            active_workers_max,
            recheck_interval_ns: SPACE_TIMEOUT_NS / 10,
            wait_max_ns: SPACE_TIMEOUT_NS,
        };
        Self {
            manager: RecordedManager::recording(ActiveBufferManager::new(config, policy)),
            model: Model::new(pool_bytes, loads_in_flight_max),
            memory: MemoryModel::default(),
            now: 0,
            weight: 1,
            computation: None,
            pages: None,
            remote: None,
            disk: Disk::Serial { free_at: 0 },
            failing: BTreeSet::new(),
            layouts: BTreeMap::new(),
            batches: None,
            actions: Vec::new(),
            trace: Vec::new(),
            finished: Vec::new(),
            failed: Vec::new(),
            without_space: Vec::new(),
            ended: BTreeMap::new(),
            events: BTreeSet::new(),
            profiles: BTreeMap::new(),
            stalled: Vec::new(),
            sequence: 0,
        }
    }

    /// The world, and a [`table`] in it.
    pub(crate) fn with_table(mut self, chunks: usize, group_bytes: &[u64]) -> (Self, TableId) {
        let table = self.add_table(&table(chunks, group_bytes));
        (self, table)
    }

    pub(crate) fn add_table(&mut self, layout: &Arc<Layout>) -> TableId {
        let (table, first) = self.manager.register_layout(Arc::clone(layout), DeviceId(0));
        let chunks = layout.chunks().zip(layout.chunk_specs(first)).collect();
        self.model.tables.insert(table, chunks);
        let ids = (first.0..).map(PageId);
        self.model.page_bytes.extend(ids.zip(layout.page_bytes()));
        self.layouts.insert(table, (Arc::clone(layout), first));
        table
    }

    /// A page of a table that was added as a whole.
    pub(crate) fn page(&self, table: TableId, page: PageIndex) -> PageId {
        PageId(self.layouts[&table].1.0 + page.0)
    }

    /// The table that a page was added with, and its index there.
    fn page_of(&self, id: PageId) -> (TableId, PageIndex) {
        let of = |(&table, (layout, first)): (&TableId, &(Arc<Layout>, PageId))| {
            let page = id.0.checked_sub(first.0)?;
            ((page as usize) < layout.page_count()).then_some((table, PageIndex(page)))
        };
        self.layouts.iter().rev().find_map(of).unwrap()
    }

    pub(crate) fn remove_table(&mut self, table: TableId) -> Result<(), RemoveTableError> {
        let removed = self.manager.remove_table(Time(self.now), table);
        self.model.table_removed(table, removed.is_ok());
        if removed.is_ok() {
            let (layout, first) = &self.layouts[&table];
            let pages = *first..PageId(first.0 + layout.page_count() as u32);
            self.model.pages_removed(pages.clone());
            self.manager.remove_pages(Time(self.now), pages).unwrap();
        }
        self.settle_at_times();
        removed
    }

    /// Starts a scan in any order with these workers.
    pub(crate) fn start(
        &mut self,
        table: TableId,
        groups: &[u32],
        rows: Range<u64>,
        workers: &[WorkerProfile],
    ) -> ScanId {
        self.try_start(table, groups, vec![rows], Order::Any, workers).unwrap()
    }

    pub(crate) fn try_start(
        &mut self,
        table: TableId,
        groups: &[u32],
        rows: Vec<Range<u64>>,
        order: Order,
        workers: &[WorkerProfile],
    ) -> Result<ScanId, StartScanError> {
        let groups = groups.iter().copied().map(GroupIndex).collect();
        let weight = self.weight;
        let chunks = match self.layouts.get(&table) {
            Some((layout, _)) => layout.chunk_ranges(&rows),
            None => Vec::new(),
        };
        let pages = self.pages.clone();
        let spec = ScanSpec {
            table,
            groups,
            chunks,
            order,
            workers: workers.len(),
            weight,
            pages,
            computation: self.computation,
        };
        let scan = match self.remote {
            Some(query) => self.manager.start_remote_scan(Time(self.now), spec.clone(), query)?,
            None => self.manager.start_scan(Time(self.now), spec.clone())?,
        };
        let is_sparse = self.manager.state().scan(scan).unwrap().is_sparse();
        let spec = ScanSpec { pages: spec.pages.filter(|_| is_sparse), ..spec };
        if self.remote.is_some() {
            self.model.remote_scans.insert(scan);
        }
        self.model.scan_started(scan, &spec);
        for (worker, profile) in workers.iter().enumerate() {
            let worker = WorkerIndex::from_usize(worker);
            self.profiles.insert((scan, worker), *profile);
            if profile.first_ns < u64::MAX {
                self.plan(self.now + profile.first_ns, Event::Ask(scan, worker));
            }
        }
        self.model.check(&self.manager);
        Ok(scan)
    }

    /// Registers the needs of a scan at another server.
    pub(crate) fn register_interest(
        &mut self,
        table: TableId,
        groups: &[u32],
        rows: Vec<Range<u64>>,
    ) -> ScanId {
        let groups: Vec<_> = groups.iter().copied().map(GroupIndex).collect();
        let chunks = self.layouts[&table].0.chunk_ranges(&rows);
        let registered =
            self.manager.register_interest(Time(self.now), table, groups.clone(), chunks.clone());
        let (order, pages) = (Order::Any, None);
        let spec = ScanSpec {
            table,
            groups,
            chunks,
            order,
            workers: 0,
            weight: 1,
            pages,
            computation: None,
        };
        let scan = registered.unwrap();
        self.model.scan_started(scan, &spec);
        self.model.check(&self.manager);
        scan
    }

    pub(crate) fn set_source(&mut self, page: PageId, source: Source) {
        self.manager.set_source(Time(self.now), page..PageId(page.0 + 1), source);
        self.model.sources.insert(page, source);
        self.model.check(&self.manager);
    }

    pub(crate) fn cancel(&mut self, scan: ScanId) {
        if let Some(report) = self.manager.report(scan) {
            self.ended.insert(scan, Ended { report, at: self.now });
        }
        self.manager.cancel_scan(Time(self.now), scan);
        self.model.scan_ended(scan);
        let (resumed, stalled) = self.stalled.iter().partition(|(_, _, until)| *until == scan);
        self.stalled = stalled;
        for (scan, worker, _) in resumed {
            self.plan(self.now, Event::Ask(scan, worker));
        }
        self.model.check(&self.manager);
    }

    /// Adds the chunks that the scan neither needs, had, nor gave up, if the pool can hold them. Workers that had
    /// finished ask again.
    pub(crate) fn extend(&mut self, scan: ScanId, chunks: &[u32]) {
        let chunks = self.model.new_chunks(scan, chunks);
        match self.manager.extend_scan(Time(self.now), scan, chunks.clone()) {
            Ok(()) => {
                for worker in self.model.scan_extended(scan, &chunks) {
                    self.plan(self.now, Event::Ask(scan, worker));
                }
            }
            Err(StartScanError::PoolTooSmall { pool_bytes, chunk_bytes }) => {
                assert!(chunk_bytes > pool_bytes);
            }
            Err(error) => panic!("{error}"),
        }
        self.model.check(&self.manager);
    }

    pub(crate) fn prune(&mut self, scan: ScanId, chunks: &[u32]) {
        let chunks: Vec<_> = chunks.iter().copied().map(ChunkIndex).collect();
        self.manager.prune_scan(Time(self.now), scan, chunks.clone());
        self.model.scan_pruned(scan, chunks.into_iter());
        self.model.check(&self.manager);
    }

    pub(crate) fn set_pool_bytes(&mut self, bytes: u64) -> u64 {
        let limit = self.manager.set_pool_bytes(Time(self.now), bytes);
        self.memory.is_pool_set_by_hand = true;
        self.model.pool_resized(limit);
        self.settle_at_times();
        limit
    }

    pub(crate) fn evict_idle(&mut self) {
        self.manager.evict_idle(Time(self.now));
        self.settle_at_times();
    }

    pub(crate) fn evict_unneeded(&mut self) {
        self.manager.evict_unneeded(Time(self.now));
        self.model.useless_loads = 0;
        self.settle_at_times();
    }

    /// Carries out actions until there is none, checking after each.
    pub(crate) fn settle(&mut self) {
        while let Some(action) = self.manager.poll_action() {
            // The pool may shrink for others while actions are polled, too.
            self.model.pool_bytes = self.manager.state().pool_bytes();
            self.carry_out(&action);
        }
        self.model.pool_bytes = self.manager.state().pool_bytes();
        self.model.check_settled(&self.manager);
        self.check_memory_settled();
        self.check_unmet();
    }

    /// The time of the next event, if there is one.
    fn next_at(&self) -> Option<u64> {
        let timeout = self.manager.poll_timeout().map(|time| time.0);
        self.events.first().map(|&(at, _, _)| at).into_iter().chain(timeout).min()
    }

    /// Carries out actions, unless there is another event and the batch continues.
    fn settle_at_times(&mut self) {
        let goes_on = |random: &mut SplitMix64| random.below(3) > 0;
        if self.events.is_empty() || !self.batches.as_mut().is_some_and(goes_on) {
            self.settle();
        }
    }

    /// Notes that a column of a slice is decoded, or dropped.
    pub(crate) fn decode(
        &mut self,
        table: TableId,
        chunk: ChunkIndex,
        group: GroupIndex,
        held: bool,
    ) {
        if held {
            self.manager.slice_decoded(table, chunk, group);
        } else {
            self.manager.slice_dropped(table, chunk, group);
        }
        self.model.decoded((table, chunk, group), held);
    }

    /// Handles the next event. Returns false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.settle_at_times();
        let Some(at) = self.next_at() else {
            self.model.check_idle();
            return false;
        };
        self.now = self.now.max(at);
        if self.events.first().is_some_and(|&(first, _, _)| first == at) {
            let (_, _, event) = self.events.pop_first().unwrap();
            self.handle(event);
        } else {
            self.manager.handle_timeout(Time(self.now));
        }
        self.model.check(&self.manager);
        self.settle_at_times();
        true
    }

    /// Handles all events.
    pub(crate) fn drive(&mut self) {
        self.drive_bounded(100_000);
    }

    /// Handles all events. Panics if there are more than this.
    pub(crate) fn drive_bounded(&mut self, steps_max: usize) {
        for _ in 0..steps_max {
            if !self.step() {
                return;
            }
        }
        panic!("I5: still busy after {steps_max} steps\n{}", self.tail());
    }

    pub(crate) fn drive_until(&mut self, until: u64) {
        self.settle_at_times();
        while self.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// The record of everything so far.
    pub(crate) fn take_log(&mut self) -> Log {
        let header = Header::new(self.manager.policy_name(), self.manager.config(), 1);
        Log { header, entries: self.manager.take_entries() }
    }

    fn tail(&self) -> String {
        self.trace[self.trace.len().saturating_sub(40)..].join("\n")
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence, event));
    }

    fn handle(&mut self, event: Event) {
        let now = Time(self.now);
        match event {
            Event::Ask(scan, worker) => {
                if self.model.asks(scan, worker) {
                    self.manager.request_chunk(now, scan, worker).unwrap();
                } else {
                    self.manager.release_chunk(now, scan, worker);
                    assert!(self.manager.request_chunk(now, scan, worker).is_err());
                }
            }
            Event::Release(scan, worker) => {
                self.manager.release_chunk(now, scan, worker);
                self.model.released(scan, worker);
            }
            Event::Arrive(load, id) if self.failing.contains(&id) => {
                self.model.page_failed(load, id);
                self.manager.page_failed(now, load, id);
            }
            Event::Arrive(load, id) => {
                self.model.page_loaded(load, id);
                self.manager.page_loaded(now, load, id);
            }
            Event::Return(bytes) => self.give(bytes),
        }
    }

    fn carry_out(&mut self, action: &Action) {
        self.actions.push(action.clone());
        self.trace.push(self.describe(action));
        if self.trace.len() > 50_000 {
            panic!("livelock:\n{}", self.tail());
        }
        self.model.acted(action, self.now);
        match action {
            Action::Load { load, pages, .. } => {
                for &id in pages {
                    let at = self.arrival(id);
                    self.plan(at, Event::Arrive(*load, id));
                }
            }
            Action::Evict { .. } | Action::Escalate { .. } | Action::Unneeded { .. } => {}
            Action::GrantMemory { ticket, bytes } => self.granted(*ticket, *bytes),
            Action::Deliver { scan, worker, .. } => self.go_through(*scan, *worker),
            Action::Finish { scan, .. } => {
                if self.model.all_finished(*scan) {
                    self.finished.push(*scan);
                    self.cancel(*scan);
                }
            }
            Action::NoSpace { scan } => {
                self.without_space.push(*scan);
                self.cancel(*scan);
            }
            Action::Fail { scan, .. } => {
                self.failed.push(*scan);
                let needed = self.manager.state().scan(*scan).unwrap().needed().iter().collect();
                self.manager.prune_scan(Time(self.now), *scan, needed);
            }
        }
        self.model.check(&self.manager);
    }

    fn arrival(&mut self, id: PageId) -> u64 {
        let bytes = self.model.page_bytes[&id];
        match &mut self.disk {
            Disk::Serial { free_at } => {
                *free_at = self.now.max(*free_at) + bytes;
                *free_at
            }
            Disk::Scattered { random, ns_max } => self.now + 1 + random.below(*ns_max),
        }
    }

    fn go_through(&mut self, scan: ScanId, worker: WorkerIndex) {
        let profile = self.profiles[&(scan, worker)];
        if profile.releases_early {
            self.plan(self.now, Event::Release(scan, worker));
        }
        let delivered = self.model.delivered_count(scan, worker);
        match profile.stall {
            Some((after, until)) if delivered == after && self.model.runs(until) => {
                self.stalled.push((scan, worker, until));
            }
            _ => self.plan(self.now + profile.chunk_ns, Event::Ask(scan, worker)),
        }
    }

    fn describe(&self, action: &Action) -> String {
        let at = self.now;
        match action {
            Action::Load { load, scan, table, chunk, pages, .. } => {
                let pages: Vec<_> = pages.iter().map(|&page| self.page_of(page).1).collect();
                format!(
                    "load at={at} load={load} scan={scan} table={table} chunk={chunk} \
                     pages={pages:?}"
                )
            }
            Action::Escalate { load } => format!("escalate at={at} load={load}"),
            Action::Evict { page } => {
                let (table, page) = self.page_of(*page);
                format!("evict at={at} page={table:?}.{page:?}")
            }
            Action::Deliver { scan, worker, chunk } => {
                format!("deliver at={at} scan={scan} worker={worker} chunk={chunk}")
            }
            Action::Finish { scan, worker } => {
                format!("finish at={at} scan={scan} worker={worker}")
            }
            Action::Fail { scan, page } => {
                let (table, page) = self.page_of(*page);
                format!("fail at={at} scan={scan} page={table:?}.{page:?}")
            }
            Action::NoSpace { scan } => format!("no space at={at} scan={scan}"),
            Action::Unneeded { table, chunk, group } => {
                format!("unneeded at={at} table={table} chunk={chunk} group={group}")
            }
            Action::GrantMemory { ticket, bytes } => {
                format!("grant at={at} ticket={ticket} bytes={bytes}")
            }
        }
    }
}
