//! The naive model: the expected state of the manager, recounted from scratch, and the rules I1 to I6 as seen from
//! outside.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use coscan_core::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WorkerState {
    Away,
    Waiting,
    Busy { chunk: ChunkIndex, pins: bool },
    Finished,
}

#[derive(Clone, Debug)]
struct ScanModel {
    spec: ScanSpec,
    needed: BTreeSet<ChunkIndex>,
    /// All chunks that it ever needed.
    registered: BTreeSet<ChunkIndex>,
    delivered: BTreeSet<ChunkIndex>,
    pruned: BTreeSet<ChunkIndex>,
    workers: Vec<WorkerState>,
    counts: Vec<usize>,
    failed: bool,
}

#[derive(Clone, Debug)]
struct LoadModel {
    table: TableId,
    unreported: BTreeSet<PageId>,
    /// The pages of the chunk that its scan needs, and those that it reads besides. They stay until the load is over.
    held: BTreeSet<PageId>,
    urgent: bool,
    /// Unreported pages that come from the device: while there are any, the load takes a slot.
    of_device: BTreeSet<PageId>,
}

type Slice = (TableId, ChunkIndex, GroupIndex);

pub(crate) struct Model {
    /// The chunks of each table.
    pub tables: BTreeMap<TableId, BTreeMap<ChunkIndex, ChunkSpec>>,
    pub page_bytes: BTreeMap<PageId, u64>,
    /// The sources of pages. A page that is not listed comes from its device.
    pub sources: BTreeMap<PageId, Source>,
    /// Loads started since a scan last got something. Two scans that evict each other's pages would let it grow.
    pub useless_loads: usize,
    pub pool_bytes: u64,
    loads_in_flight_max: usize,
    cached: BTreeSet<PageId>,
    loads: BTreeMap<LoadId, LoadModel>,
    scans: BTreeMap<ScanId, ScanModel>,
    /// Scans that ever read for queries at other servers.
    pub remote_scans: BTreeSet<ScanId>,
    failed_pages: BTreeSet<PageId>,
    /// Scans that needed a page which could not be read, until they are told.
    doomed: BTreeSet<ScanId>,
    /// The number of decoded columns of slices: table, chunk, column group.
    decoded: BTreeMap<Slice, usize>,
    /// Decoded slices that were reported as unneeded since they were last needed or decoded.
    unneeded_slices: BTreeSet<Slice>,
    /// Pages that the manager may evict though it has not reported it yet, since they were just removed.
    removing: Range<PageId>,
    pub loaded_bytes: u64,
}

impl Model {
    pub(crate) fn new(pool_bytes: u64, loads_in_flight_max: usize) -> Self {
        Self {
            tables: BTreeMap::new(),
            page_bytes: BTreeMap::new(),
            sources: BTreeMap::new(),
            useless_loads: 0,
            pool_bytes,
            loads_in_flight_max,
            cached: BTreeSet::new(),
            loads: BTreeMap::new(),
            scans: BTreeMap::new(),
            remote_scans: BTreeSet::new(),
            failed_pages: BTreeSet::new(),
            doomed: BTreeSet::new(),
            decoded: BTreeMap::new(),
            unneeded_slices: BTreeSet::new(),
            removing: PageId(0)..PageId(0),
            loaded_bytes: 0,
        }
    }

    pub(crate) fn scan_started(&mut self, id: ScanId, spec: &ScanSpec) {
        let scan = ScanModel {
            spec: spec.clone(),
            needed: spec.chunk_indexes().collect(),
            registered: spec.chunk_indexes().collect(),
            delivered: BTreeSet::new(),
            pruned: BTreeSet::new(),
            workers: vec![WorkerState::Away; spec.workers],
            counts: vec![0; spec.workers],
            failed: false,
        };
        assert!(self.scans.insert(id, scan).is_none(), "a scan id is given once");
        self.forget_needed();
        self.useless_loads = 0;
    }

    pub(crate) fn scan_ended(&mut self, scan: ScanId) {
        self.scans.remove(&scan);
        self.useless_loads = 0;
    }

    /// The chunks of these that a scan neither needs, had, nor gave up.
    pub(crate) fn new_chunks(&self, id: ScanId, chunks: &[u32]) -> Vec<Range<ChunkIndex>> {
        let Some(scan) = self.scans.get(&id) else { return Vec::new() };
        let table = &self.tables[&scan.spec.table];
        let chunks: BTreeSet<_> = chunks.iter().copied().map(ChunkIndex).collect();
        let is_new = |chunk: &ChunkIndex| {
            let known = [&scan.needed, &scan.delivered, &scan.pruned];
            table.contains_key(chunk) && !known.iter().any(|it| it.contains(chunk))
        };
        let run = |chunk: ChunkIndex| chunk..ChunkIndex(chunk.0 + 1);
        chunks.into_iter().filter(is_new).map(run).collect()
    }

    /// Notes that a scan needs these new chunks, too. Returns the workers that may ask again.
    pub(crate) fn scan_extended(
        &mut self,
        id: ScanId,
        chunks: &[Range<ChunkIndex>],
    ) -> Vec<WorkerIndex> {
        self.useless_loads = 0;
        let Some(scan) = self.scans.get_mut(&id) else { return Vec::new() };
        if scan.failed || self.doomed.contains(&id) {
            return Vec::new();
        }
        let has_finished = |&it: &usize| scan.workers[it] == WorkerState::Finished;
        let finished = (0..scan.workers.len()).filter(has_finished);
        let finished = finished.map(WorkerIndex::from_usize).collect();
        scan.registered.extend(chunks.iter().map(|run| run.start));
        scan.needed.extend(chunks.iter().map(|run| run.start));
        self.forget_needed();
        finished
    }

    pub(crate) fn scan_pruned(&mut self, id: ScanId, chunks: impl Iterator<Item = ChunkIndex>) {
        let Some(scan) = self.scans.get_mut(&id) else { return };
        let is_doomed = self.doomed.contains(&id); // Then core does not count them.
        for chunk in chunks {
            if scan.needed.remove(&chunk) && !is_doomed {
                scan.pruned.insert(chunk);
            }
        }
        self.useless_loads = 0;
    }

    pub(crate) fn pool_resized(&mut self, limit: u64) {
        self.pool_bytes = limit;
        self.useless_loads = 0;
    }

    pub(crate) fn table_removed(&mut self, table: TableId, removed: bool) {
        let scans = self.scans.values().any(|scan| scan.spec.table == table);
        let loads = self.loads.values().any(|load| load.table == table);
        assert_eq!(
            removed,
            self.tables.contains_key(&table) && !scans && !loads,
            "a table goes if and only if nothing uses it"
        );
        if removed {
            self.tables.remove(&table);
            self.decoded.retain(|&(of, ..), _| of != table);
            self.unneeded_slices.retain(|&(of, ..)| of != table);
        }
    }

    /// Notes that a column of a slice is decoded, or dropped.
    pub(crate) fn decoded(&mut self, slice: Slice, held: bool) {
        let of_table = self.tables.get(&slice.0).and_then(|chunks| chunks.get(&slice.1));
        if of_table.is_none_or(|chunk| slice.2.as_usize() >= chunk.slices.len()) {
            return;
        }
        let columns = self.decoded.get(&slice).copied().unwrap_or(0);
        match if held { columns + 1 } else { columns.saturating_sub(1) } {
            0 => {
                self.decoded.remove(&slice);
                self.unneeded_slices.remove(&slice);
            }
            columns => {
                self.decoded.insert(slice, columns);
                if held {
                    self.unneeded_slices.remove(&slice);
                }
            }
        }
    }

    fn interest(&self, (table, chunk, group): Slice) -> usize {
        let needs = |(id, scan): &(&ScanId, &ScanModel)| {
            let spec = &scan.spec;
            let decodes = !scan.workers.is_empty() && !self.remote_scans.contains(id);
            decodes
                && spec.table == table
                && spec.pages.is_none()
                && spec.groups.contains(&group)
                && scan.needed.contains(&chunk)
        };
        self.scans.iter().filter(needs).count()
    }

    /// Forgets reports of slices that scans need now, which will be reported again.
    fn forget_needed(&mut self) {
        let unneeded = std::mem::take(&mut self.unneeded_slices).into_iter();
        self.unneeded_slices = unneeded.filter(|&slice| self.interest(slice) == 0).collect();
    }

    pub(crate) fn pages_removed(&mut self, pages: Range<PageId>) {
        self.removing = pages;
    }

    pub(crate) fn runs(&self, scan: ScanId) -> bool {
        self.scans.get(&scan).is_some_and(|scan| !scan.failed)
    }

    pub(crate) fn delivered_count(&self, scan: ScanId, worker: WorkerIndex) -> usize {
        self.scans[&scan].counts[worker.as_usize()]
    }

    pub(crate) fn all_finished(&self, scan: ScanId) -> bool {
        self.scans[&scan].workers.iter().all(|worker| *worker == WorkerState::Finished)
    }

    /// A worker asks. Returns false if the scan does not take requests.
    pub(crate) fn asks(&mut self, id: ScanId, worker: WorkerIndex) -> bool {
        let Some(scan) = self.scans.get_mut(&id) else { return false };
        let failed = scan.failed || self.doomed.contains(&id);
        let at = &mut scan.workers[worker.as_usize()];
        *at = if failed { WorkerState::Finished } else { WorkerState::Waiting };
        !failed
    }

    pub(crate) fn released(&mut self, scan: ScanId, worker: WorkerIndex) {
        let Some(scan) = self.scans.get_mut(&scan) else { return };
        if let WorkerState::Busy { pins, .. } = &mut scan.workers[worker.as_usize()] {
            *pins = false;
        }
    }

    pub(crate) fn page_loaded(&mut self, load: LoadId, id: PageId) {
        self.reported(load, id);
        self.cached.insert(id);
        self.end_loads();
    }

    pub(crate) fn page_failed(&mut self, load: LoadId, id: PageId) {
        self.reported(load, id);
        self.failed_pages.insert(id);
        let needs = |scan: &ScanModel| {
            let mut pages = scan.needed.iter().map(|&chunk| self.pages(&scan.spec, chunk));
            !scan.failed && !scan.workers.is_empty() && pages.any(|pages| pages.contains(&id))
        };
        let doomed = self.scans.iter().filter(|(_, scan)| needs(scan)).map(|(&scan, _)| scan);
        let doomed: Vec<_> = doomed.collect();
        self.doomed.extend(doomed);
        for load in self.loads.values_mut() {
            load.held.remove(&id);
        }
        self.end_loads();
    }

    fn reported(&mut self, load: LoadId, id: PageId) {
        let load = self.loads.get_mut(&load).unwrap();
        assert!(load.unreported.remove(&id));
        load.of_device.remove(&id);
    }

    fn end_loads(&mut self) {
        let reading = self.reading();
        self.loads.retain(|_, load| {
            let mut arriving = load.held.intersection(&reading);
            !load.unreported.is_empty() || arriving.next().is_some()
        });
    }

    fn reading(&self) -> BTreeSet<PageId> {
        self.loads.values().flat_map(|load| load.unreported.iter().copied()).collect()
    }

    fn pages(&self, spec: &ScanSpec, chunk: ChunkIndex) -> BTreeSet<PageId> {
        let slices = &self.tables[&spec.table][&chunk].slices;
        let pages = spec.groups.iter().flat_map(|&group| &slices[group.as_usize()]);
        let reads = |page: &&PageId| spec.pages.as_ref().is_none_or(|it| it.contains(page));
        pages.filter(reads).copied().collect()
    }

    fn pinned(&self) -> BTreeSet<PageId> {
        let mut pinned = BTreeSet::new();
        for scan in self.scans.values() {
            for worker in &scan.workers {
                if let WorkerState::Busy { chunk, pins: true } = worker {
                    pinned.extend(self.pages(&scan.spec, *chunk));
                }
            }
        }
        for load in self.loads.values() {
            pinned.extend(&load.held);
        }
        pinned
    }

    pub(crate) fn acted(&mut self, action: &Action, now: u64) {
        match action {
            Action::Load { load, scan, table, chunk, pages, urgent } => {
                let is_of_device = |id: &PageId| {
                    self.sources.get(id).is_none_or(|&source| source == Source::Device)
                };
                let is_remote = self.remote_scans.contains(scan);
                let of_device = pages.iter().filter(|id| is_remote || is_of_device(id));
                let of_device: BTreeSet<_> = of_device.copied().collect();
                let takes_slot = !of_device.is_empty();
                let in_slots = self.loads.values().filter(|load| !load.of_device.is_empty());
                let alike = in_slots.clone().filter(|load| load.urgent == *urgent).count();
                let max = self.loads_in_flight_max;
                assert!(!takes_slot || alike < max, "too many loads in flight");
                assert!(!takes_slot || in_slots.count() / 2 < max, "too many in all");
                assert!(!self.scans[scan].workers.is_empty(), "a load for an interest");
                self.load_started(*load, *scan, (*table, *chunk), pages, (*urgent, of_device));
            }
            Action::Escalate { load } => {
                let load = self.loads.get_mut(load).expect("only a load in flight is escalated");
                assert!(!std::mem::replace(&mut load.urgent, true), "escalated twice");
            }
            Action::Evict { page } => {
                assert!(self.cached.contains(page), "{now}: {page:?} is evicted but not held");
                assert!(!self.pinned().contains(page), "I2: {now}: {page:?} is evicted in use");
                self.cached.remove(page);
            }
            Action::Deliver { scan, worker, chunk } => self.handed(*scan, *worker, *chunk),
            Action::Finish { scan, worker } => {
                let scan = self.scans.get_mut(scan).expect("an ended scan gets nothing");
                assert!(!scan.failed, "a failed scan gets nothing");
                assert!(scan.needed.is_empty(), "I1: finished, yet {:?} are missing", scan.needed);
                assert_eq!(scan.workers[worker.as_usize()], WorkerState::Waiting);
                scan.workers[worker.as_usize()] = WorkerState::Finished;
                self.useless_loads = 0;
            }
            Action::Fail { scan, page } => {
                assert!(self.failed_pages.contains(page), "{page:?} did not fail");
                assert!(self.doomed.remove(scan), "it needed it");
                let scan = self.scans.get_mut(scan).unwrap();
                assert!(!scan.failed, "a scan fails once");
                scan.failed = true;
                scan.needed.clear();
                for worker in
                    scan.workers.iter_mut().filter(|worker| **worker == WorkerState::Waiting)
                {
                    *worker = WorkerState::Finished;
                }
                self.useless_loads = 0;
            }
            Action::Unneeded { table, chunk, group } => {
                self.slice_unneeded((*table, *chunk, *group));
            }
            Action::NoSpace { scan } => {
                assert!(self.remote_scans.contains(scan), "{scan:?} may wait for space");
                assert!(!self.scans[scan].failed && !self.scans[scan].needed.is_empty());
            }
            Action::GrantMemory { .. } => {}
        }
    }

    /// The largest chunk that a running scan was registered for.
    pub(crate) fn largest_chunk_bytes(&self) -> u64 {
        let chunk_bytes = |scan: &ScanModel, chunk: ChunkIndex| {
            let slices = &self.tables[&scan.spec.table][&chunk].slices;
            let groups: BTreeSet<_> = scan.spec.groups.iter().collect();
            let pages = groups.into_iter().flat_map(|group| &slices[group.as_usize()]);
            pages.map(|page| self.page_bytes[page]).sum::<u64>()
        };
        let of_scan = |scan: &ScanModel| {
            scan.registered.iter().map(|&chunk| chunk_bytes(scan, chunk)).max().unwrap_or(0)
        };
        let read = self.scans.values().filter(|scan| !scan.workers.is_empty());
        read.map(of_scan).max().unwrap_or(0)
    }

    /// Checks and notes a report that a slice is unneeded.
    fn slice_unneeded(&mut self, slice: Slice) {
        assert!(self.decoded.contains_key(&slice), "{slice:?} is not decoded");
        assert_eq!(self.interest(slice), 0, "{slice:?} is needed");
        assert!(self.unneeded_slices.insert(slice), "{slice:?} is reported twice");
    }

    fn load_started(
        &mut self,
        load: LoadId,
        scan: ScanId,
        (table, chunk): (TableId, ChunkIndex),
        pages: &[PageId],
        (urgent, of_device): (bool, BTreeSet<PageId>),
    ) {
        let of_chunk = self.tables[&table][&chunk].slices.concat();
        let reading = self.reading();
        for &id in pages {
            assert!(of_chunk.contains(&id), "{id:?} is not of {chunk:?}");
            assert!(!self.cached.contains(&id) && !reading.contains(&id), "{id:?} is read twice");
        }
        let model = &self.scans[&scan];
        assert!(model.needed.contains(&chunk), "a load is for a chunk that its scan needs");
        let mut held = self.pages(&model.spec, chunk);
        held.extend(pages);
        let unreported: BTreeSet<_> = pages.iter().copied().collect();
        assert_eq!(unreported.len(), pages.len(), "a page twice in a load");
        assert!(!pages.is_empty());
        self.loads.insert(load, LoadModel { table, unreported, held, urgent, of_device });
        self.loaded_bytes += pages.iter().map(|page| self.page_bytes[page]).sum::<u64>();
        self.useless_loads += 1;
        let pages = self.page_bytes.len();
        assert!(self.useless_loads <= 2 * pages + 8, "livelock: loads without any delivery");
    }

    fn handed(&mut self, id: ScanId, worker: WorkerIndex, chunk: ChunkIndex) {
        let scan = self.scans.get(&id).expect("an ended scan gets nothing");
        assert!(!scan.failed, "a failed scan gets nothing");
        assert_eq!(
            scan.workers[worker.as_usize()],
            WorkerState::Waiting,
            "only who waits is answered"
        );
        assert!(!scan.delivered.contains(&chunk), "I1: {id:?} gets {chunk:?} twice");
        assert!(!scan.pruned.contains(&chunk), "{id:?} gets {chunk:?}, which it gave up");
        assert!(scan.needed.contains(&chunk), "I1: {id:?} never needed {chunk:?}");
        if scan.spec.order == Order::InOrder {
            assert_eq!(scan.needed.first(), Some(&chunk), "I6: {id:?} is handed {chunk:?} early");
        }
        for page in self.pages(&scan.spec, chunk) {
            assert!(self.cached.contains(&page), "I2: {chunk:?} is handed out without {page:?}");
        }
        let scan = self.scans.get_mut(&id).unwrap();
        scan.needed.remove(&chunk);
        scan.delivered.insert(chunk);
        scan.counts[worker.as_usize()] += 1;
        scan.workers[worker.as_usize()] = WorkerState::Busy { chunk, pins: true };
        self.useless_loads = 0;
    }

    /// Checks the end, when nothing will ever happen again: no worker may wait, unless others keep what they were
    /// handed.
    pub(crate) fn check_idle(&self) {
        let waits = |scan: &ScanModel| scan.workers.contains(&WorkerState::Waiting);
        let pins = |scan: &ScanModel| {
            scan.workers.iter().any(|worker| matches!(worker, WorkerState::Busy { pins: true, .. }))
        };
        assert!(self.loads.is_empty(), "loads are never finished");
        if !self.scans.values().any(pins) {
            for (id, scan) in &self.scans {
                assert!(!waits(scan), "I4: {id:?} waits for ever for {:?}", scan.needed);
            }
        }
    }

    /// Checks that model and manager agree when all actions have been polled.
    pub(crate) fn check_settled(&mut self, manager: &ActiveBufferManager) {
        assert!(self.is_settled(manager), "an action is missing");
        assert!(
            self.doomed.iter().all(|scan| !self.scans.contains_key(scan)),
            "a failure is missing"
        );
        for &slice in self.decoded.keys() {
            let interest = self.interest(slice);
            let (table, chunk, group) = slice;
            assert_eq!(manager.state().slice_interest(table, chunk, group), interest);
            let is_reported = self.unneeded_slices.contains(&slice);
            assert_eq!(is_reported, interest == 0, "{slice:?} is reported as unneeded");
        }
        self.check(manager);
    }

    /// Recounts the counts that the manager keeps. Actions not yet polled may be ahead of the model: the caller
    /// settles.
    pub(crate) fn check(&mut self, manager: &ActiveBufferManager) {
        manager.audit().unwrap();
        let state = manager.state();
        assert!(state.held_bytes() <= state.pool_bytes(), "I3");
        if !self.is_settled(manager) {
            return;
        }
        self.removing = PageId(0)..PageId(0);
        let reading = self.reading();
        let bytes = |id: &PageId| self.page_bytes[id];
        let held: u64 = self.cached.iter().chain(&reading).map(bytes).sum();
        assert_eq!(state.held_bytes(), held, "bytes held");
        assert_eq!(state.pool_bytes(), self.pool_bytes);
        assert_eq!(manager.loads_in_flight(), self.loads.len());

        let wanted: BTreeSet<_> = self
            .scans
            .values()
            .flat_map(|scan| scan.needed.iter().flat_map(|&c| self.pages(&scan.spec, c)))
            .collect();
        let unneeded: BTreeSet<_> = state.unneeded_pages().collect();
        assert_eq!(unneeded, self.cached.difference(&wanted).copied().collect(), "unneeded");
        let pinned = self.pinned();
        let unpinned: u64 = self.cached.difference(&pinned).map(bytes).sum();
        assert_eq!(state.unpinned_bytes(), unpinned, "bytes not in use");
        for &page in &self.cached {
            assert_eq!(state.is_evictable(page), !pinned.contains(&page), "I2: pins of {page:?}");
            assert_eq!(state.is_unneeded(page), !wanted.contains(&page));
        }
        assert_eq!(state.scans().count(), self.scans.len());
        for (&id, scan) in &self.scans {
            self.check_scan(state.scan(id).expect("it runs"), scan, &reading);
        }
    }

    /// Whether the model has seen everything that the manager decided.
    fn is_settled(&self, manager: &ActiveBufferManager) -> bool {
        let cached: BTreeSet<_> = manager.state().cached_pages().collect();
        let same = |(id, scan): (&ScanId, &ScanModel)| {
            let known =
                manager.state().scan(*id).map(|scan| (scan.needed().len(), scan.has_failed()));
            known.unwrap_or_default() == (scan.needed.len(), scan.failed)
        };
        !self.cached.iter().any(|id| self.removing.contains(id))
            && cached == self.cached
            && manager.loads_in_flight() == self.loads.len()
            && self.scans.iter().all(same)
    }

    fn check_scan(&self, scan: &Scan, model: &ScanModel, reading: &BTreeSet<PageId>) {
        let id = scan.id();
        assert!(scan.needed().iter().eq(model.needed.iter().copied()), "{id:?} needed");
        let pages = |chunk: &ChunkIndex| self.pages(&model.spec, *chunk);
        let available = |chunk: &ChunkIndex| pages(chunk).iter().all(|p| self.cached.contains(p));
        let covered = |chunk: &ChunkIndex| {
            pages(chunk).iter().all(|p| self.cached.contains(p) || reading.contains(p))
        };
        for chunk in &model.needed {
            assert_eq!(scan.is_available(*chunk), available(chunk), "{id:?} {chunk:?} available");
            assert_eq!(scan.is_covered(*chunk), covered(chunk), "{id:?} {chunk:?} covered");
        }
        let busy = model.workers.iter().filter(|at| matches!(at, WorkerState::Busy { .. })).count();
        let (ready, coming) = match model.spec.order {
            Order::Any => (
                model.needed.iter().filter(|chunk| available(chunk)).count(),
                model.needed.iter().filter(|chunk| covered(chunk)).count(),
            ),
            Order::InOrder => {
                let next = model.needed.iter().take(model.workers.len() + 2);
                (
                    next.clone().take_while(|chunk| available(chunk)).count(),
                    next.take_while(|chunk| covered(chunk)).count(),
                )
            }
        };
        assert_eq!(scan.busy_workers(), busy, "{id:?} busy workers");
        assert_eq!(scan.ready_chunks(), ready + busy, "{id:?} ready chunks");
        assert_eq!(scan.arriving(), coming - ready, "{id:?} arriving");
        assert_eq!(scan.waiting_since().is_some(), model.workers.contains(&WorkerState::Waiting));
        assert_eq!(scan.report().chunks_delivered, model.delivered.len() as u64);
        assert_eq!(scan.report().chunks_pruned_dynamic, model.pruned.len() as u64);
    }
}
