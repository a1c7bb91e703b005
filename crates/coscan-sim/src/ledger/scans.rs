//! Scans in the ledger: the chunks that each still needs, and the states of its workers.

use coscan_core::{
    ChunkIndex, GroupIndex, Index, IndexSet, Order, PageId, ScanId, ScanSpec, TableId, Time,
    WorkerIndex,
};

use super::{Ledger, Place};
use crate::violation::{Broken, Rule, ensure};

/// The state of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WorkerState {
    Idle,
    Waiting {
        since: Time,
    },
    /// The worker works on a chunk, and may use its pages.
    Busy {
        chunk: ChunkIndex,
        pages: bool,
    },
    Finished,
}

#[derive(Clone, Debug)]
pub(super) struct ShadowScan {
    pub(super) table: TableId,
    pub(super) groups: IndexSet<GroupIndex>,
    /// The only pages that it reads, if it reads selected pages.
    selected: Option<IndexSet<PageId>>,
    order: Order,
    /// The chunks in the order of their rows.
    sequence: Vec<ChunkIndex>,
    pub(super) needed: IndexSet<ChunkIndex>,
    workers: Vec<WorkerState>,
    failed: bool,
}

impl ShadowScan {
    fn may_read(&self, page: PageId) -> bool {
        self.selected.as_ref().is_none_or(|selected| selected.contains(page))
    }
}

impl Ledger {
    /// Enters a scan, and whether the manager reads selected pages for it.
    pub(crate) fn scan_started(
        &mut self,
        id: ScanId,
        spec: &ScanSpec,
        is_sparse: bool,
    ) -> Result<(), Broken> {
        ensure(!is_sparse || spec.pages.is_some(), Rule::Records, || {
            format!("{id:?} is said to pick pages, but names none")
        })?;
        let book = ShadowScan {
            table: spec.table,
            groups: spec.groups.iter().copied().collect(),
            selected: spec
                .pages
                .iter()
                .filter(|_| is_sparse)
                .map(|pages| pages.iter().copied().collect())
                .next(),
            order: spec.order,
            sequence: spec.chunk_indexes().collect(),
            needed: spec.chunk_indexes().collect(),
            workers: vec![WorkerState::Idle; spec.workers],
            failed: false,
        };
        self.scans.insert(id, book);
        self.useless_loads = 0;
        Ok(())
    }

    /// Enters that a scan was cancelled.
    pub(crate) fn scan_ended(&mut self, id: ScanId) {
        let workers = self.scans.get(&id).map_or(0, |scan| scan.workers.len());
        for worker in (0..workers).map(WorkerIndex::from_usize) {
            self.pages_released(id, worker);
            self.place_worker(id, worker, WorkerState::Finished);
        }
        self.scans.remove(&id);
        self.useless_loads = 0;
    }

    /// Enters that chunks of a scan were pruned. Returns the number that it still needed.
    pub(crate) fn pruned(&mut self, id: ScanId, chunks: &[ChunkIndex]) -> usize {
        self.useless_loads = 0;
        let Some(scan) = self.scans.get_mut(&id) else { return 0 };
        chunks.iter().filter(|&&chunk| scan.needed.remove(chunk)).count()
    }

    /// Enters that a worker asks for a chunk.
    pub(crate) fn asks(&mut self, now: Time, id: ScanId, worker: WorkerIndex) {
        self.pages_released(id, worker);
        self.place_worker(id, worker, WorkerState::Waiting { since: now });
    }

    /// Enters that a worker no longer uses the pages of its chunk.
    pub(crate) fn pages_released(&mut self, id: ScanId, worker: WorkerIndex) {
        let Some(scan) = self.scans.get_mut(&id) else { return };
        if let WorkerState::Busy { chunk, pages } = &mut scan.workers[worker.as_usize()]
            && std::mem::replace(pages, false)
        {
            let chunk = *chunk;
            self.count_users(id, chunk, |users| users - 1);
        }
    }

    /// Enters that a worker returns its chunk before it has used it, and asks for none.
    pub(crate) fn withdrawn(&mut self, id: ScanId, worker: WorkerIndex) {
        self.pages_released(id, worker);
        let Some(scan) = self.scans.get_mut(&id) else { return };
        if let WorkerState::Busy { chunk, .. } = scan.workers[worker.as_usize()] {
            scan.needed.insert(chunk);
        }
        self.place_worker(id, worker, WorkerState::Idle);
    }

    /// Checks that nobody needs a chunk that the manager has retired, and no worker uses its pages.
    pub(crate) fn chunk_retired(&self, table: usize, chunk: ChunkIndex) -> Result<(), Broken> {
        let uses = |worker: &WorkerState| matches!(worker, WorkerState::Busy { chunk: used, pages: true } if *used == chunk);
        let of_table = self.scans.iter().filter(|(_, scan)| scan.table.as_usize() == table);
        let mut users = of_table
            .filter(|(_, scan)| scan.needed.contains(chunk) || scan.workers.iter().any(uses));
        let user = users.next().map(|(id, _)| *id);
        ensure(user.is_none(), Rule::PagesInUseStay, || {
            format!("{chunk:?} of table {table} is retired, though {user:?} needs or uses it")
        })
    }

    pub(super) fn check_load_helps(
        &self,
        id: ScanId,
        table: TableId,
        chunk: ChunkIndex,
        pages: &[PageId],
    ) -> Result<(), Broken> {
        let scan = self.running(id)?;
        ensure(scan.table == table && scan.needed.contains(chunk), Rule::Protocol, || {
            format!("a load is for {chunk:?} of {table:?}, which {id:?} does not need")
        })?;
        let helps = self.pages_of(scan, chunk).any(|page| pages.contains(&page));
        ensure(helps, Rule::Protocol, || format!("a load for {id:?} reads nothing that it needs"))
    }

    pub(super) fn delivered(
        &mut self,
        now: Time,
        id: ScanId,
        worker: WorkerIndex,
        chunk: ChunkIndex,
    ) -> Result<(), Broken> {
        self.check_answer(now, id, worker)?;
        let scan = self.running(id)?;
        ensure(scan.needed.contains(chunk), Rule::EachChunkOnce, || {
            format!("{id:?} is handed {chunk:?}, which it had, was pruned of or never needed")
        })?;
        let first = scan.sequence.iter().copied().find(|&chunk| scan.needed.contains(chunk));
        ensure(scan.order == Order::Any || first == Some(chunk), Rule::Order, || {
            format!("{id:?} in order is handed {chunk:?}, not {first:?}")
        })?;
        let missing = self.pages_of(scan, chunk).find(|&id| self.page(id).place != Place::Cached);
        ensure(missing.is_none(), Rule::PagesInUseStay, || {
            format!("{id:?} is handed {chunk:?} without {missing:?}")
        })?;
        self.count_users(id, chunk, |users| users + 1);
        self.place_worker(id, worker, WorkerState::Busy { chunk, pages: true });
        self.scans.get_mut(&id).expect("it runs").needed.remove(chunk);
        self.useless_loads = 0;
        Ok(())
    }

    pub(super) fn finished(
        &mut self,
        now: Time,
        id: ScanId,
        worker: WorkerIndex,
    ) -> Result<(), Broken> {
        self.check_answer(now, id, worker)?;
        let needed = &self.running(id)?.needed;
        ensure(needed.is_empty(), Rule::EachChunkOnce, || {
            format!("{id:?} is told that nothing is left, but never got {needed:?}")
        })?;
        self.place_worker(id, worker, WorkerState::Finished);
        self.useless_loads = 0;
        Ok(())
    }

    pub(super) fn scan_failed(&mut self, id: ScanId, page: PageId) -> Result<(), Broken> {
        let scan = self.running(id)?;
        let needed = scan.needed.iter().flat_map(|chunk| self.pages_of(scan, chunk));
        let needs = needed.into_iter().any(|needed| needed == page);
        ensure(needs && self.failed == Some(page), Rule::Protocol, || {
            format!("{id:?} fails for {page:?}, which it does not need or which can be read")
        })?;
        let scan = self.scans.get_mut(&id).expect("it runs");
        scan.failed = true;
        scan.needed = IndexSet::new();
        for worker in (0..scan.workers.len()).map(WorkerIndex::from_usize) {
            if matches!(self.scans[&id].workers[worker.as_usize()], WorkerState::Waiting { .. }) {
                self.place_worker(id, worker, WorkerState::Finished);
            }
        }
        self.useless_loads = 0;
        Ok(())
    }

    /// Checks that no worker has waited beyond the bound.
    pub(crate) fn check_waits(&self, now: Time) -> Result<(), Broken> {
        for (id, scan) in self.scans.iter().filter(|(_, scan)| !scan.failed) {
            for worker in &scan.workers {
                let WorkerState::Waiting { since } = worker else { continue };
                let waited_ns = now.since(*since);
                ensure(waited_ns <= self.wait_ns_max, Rule::NoStarving, || {
                    format!("a worker of {id:?} has waited {waited_ns} ns for an answer")
                })?;
            }
        }
        Ok(())
    }

    /// Checks that only a waiting worker is answered, and within a bound.
    fn check_answer(&self, now: Time, id: ScanId, worker: WorkerIndex) -> Result<(), Broken> {
        let at = self.running(id)?.workers[worker.as_usize()];
        let WorkerState::Waiting { since } = at else {
            let what = format!("{worker:?} of {id:?} is answered, but is {at:?}");
            return Err(Broken { rule: Rule::Protocol, what });
        };
        let waited_ns = now.since(since);
        ensure(waited_ns <= self.wait_ns_max, Rule::NoStarving, || {
            format!("{worker:?} of {id:?} waited {waited_ns} ns, more than {}", self.wait_ns_max)
        })
    }

    fn running(&self, id: ScanId) -> Result<&ShadowScan, Broken> {
        let scan = self.scans.get(&id).filter(|scan| !scan.failed);
        let what = || format!("{id:?} is answered or read for, but does not run");
        scan.ok_or_else(|| Broken { rule: Rule::Protocol, what: what() })
    }

    pub(super) fn pages_of(
        &self,
        scan: &ShadowScan,
        chunk: ChunkIndex,
    ) -> impl Iterator<Item = PageId> {
        let table = scan.table.as_usize();
        let layout = &self.layouts[table];
        let pages = scan.groups.iter().flat_map(move |group| layout.slice(chunk, group));
        let pages = pages.map(move |&page| self.numbers.id(table, page));
        pages.filter(|&page| scan.may_read(page))
    }

    fn count_users(&mut self, id: ScanId, chunk: ChunkIndex, count: impl Fn(u32) -> u32) {
        let pages: Vec<_> = self.pages_of(&self.scans[&id], chunk).collect();
        for page in pages {
            let page = self.page_mut(page);
            page.users = count(page.users);
        }
    }

    /// Sets the state of a worker, and updates the counts.
    fn place_worker(&mut self, id: ScanId, worker: WorkerIndex, to: WorkerState) {
        let scan = self.scans.get_mut(&id).expect("a worker belongs to a running scan");
        let from = std::mem::replace(&mut scan.workers[worker.as_usize()], to);
        self.waiting -= usize::from(matches!(from, WorkerState::Waiting { .. }));
        self.busy -= usize::from(matches!(from, WorkerState::Busy { .. }));
        self.waiting += usize::from(matches!(to, WorkerState::Waiting { .. }));
        self.busy += usize::from(matches!(to, WorkerState::Busy { .. }));
    }
}
