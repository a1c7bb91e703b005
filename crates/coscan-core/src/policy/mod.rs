//! The policies, one file each: the next load, the victims, the deliveries.
//!
//! A policy only chooses. The state machine keeps the safety rules I1 to I7 whatever it chooses.

mod attach;
mod elevator;
mod eviction;
mod kind;
mod merge;
mod next_use;
mod normal;
mod page_map;
mod predictive;
mod priority;
mod ranking;
mod rates;
mod relevance;
mod relevance_2004;
mod relevance_2007;
mod reuse;
mod scoring;
mod sequence;
mod work;

use std::collections::BTreeSet;
use std::fmt;

use crate::ids::{ChunkIndex, PageId, ScanId, TableId};
use crate::scan::{PriorityBounds, Scan};
use crate::slots::LoadSlots;
use crate::state::State;

pub use attach::Attach;
pub use elevator::Elevator;
pub use kind::{PolicyKind, UnknownPolicy};
pub use normal::Normal;
pub use predictive::{Predictive, Switches};
pub use relevance::Relevance;
pub use relevance_2004::Relevance2004;
pub use relevance_2007::Relevance2007;
pub use scoring::Scores;

/// A load: cold pages of one chunk, and the scan that they are read for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadPlan {
    /// The scan that the load is for. It fails if a page that it needs cannot be read.
    pub scan: ScanId,
    /// The chunk.
    pub chunk: ChunkIndex,
    /// Cold pages of that chunk, in the order in which they should arrive.
    pub pages: Vec<PageId>,
}

impl LoadPlan {
    /// All cold pages of a chunk that a scan needs.
    pub(crate) fn of_missing(state: &State, scan: &Scan, chunk: ChunkIndex) -> Self {
        let pages = state.pages_of(scan, chunk);
        let pages = pages.into_iter().filter(|&id| state.is_cold(id)).collect();
        Self { scan: scan.id(), chunk, pages }
    }
}

/// Which needed pages may be victims [CS07 Figure 3, `findFreeSlot`; error 7 in `docs/papers.md`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Strictness {
    /// Neither pages of the scan that the load is for, nor ready chunks of starved scans.
    Strict,
    /// Also ready chunks of starved scans.
    MayStarve,
    /// Also pages that the scan of the load needs later.
    MayEvictOwn,
}

impl Strictness {
    /// All of them, strictest first.
    pub const ALL: [Strictness; 3] =
        [Strictness::Strict, Strictness::MayStarve, Strictness::MayEvictOwn];
}

/// The conditions under which a policy proposes a load.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The strictness with which victims will be chosen for the load.
    pub strictness: Strictness,
    /// Scans whose loads found no space in this round.
    pub without_space: &'a BTreeSet<ScanId>,
    /// The free load slots of the devices.
    pub slots: &'a LoadSlots,
}

impl Attempt<'_> {
    /// Whether a load for this scan may be proposed.
    #[must_use]
    pub fn admits(&self, scan: &Scan) -> bool {
        self.slots.admit(scan) && !self.without_space.contains(&scan.id())
    }
}

/// A scheduling policy.
pub trait Policy: fmt::Debug + Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// A scan was registered.
    fn on_scan_started(&mut self, _state: &State, _scan: ScanId) {}

    /// A running scan needs these chunks, too, which are in order. A scan of many is registered in steps, so each step
    /// should cost no more than its chunks.
    fn on_scan_extended(&mut self, _state: &State, _scan: ScanId, _chunks: &[ChunkIndex]) {}

    /// A scan was removed.
    fn on_scan_ended(&mut self, _scan: ScanId) {}

    /// The needs of scans in a table, the residency of its pages or their last use has changed since victims were last
    /// chosen; or the table was removed.
    fn on_table_changed(&mut self, _table: TableId) {}

    /// A table was removed, after its last scan.
    fn on_table_removed(&mut self, _table: TableId) {}

    /// A load that the policy chose was started; `plan` has the pages that fitted.
    fn on_load_started(&mut self, _state: &State, _plan: &LoadPlan) {}

    /// A page arrived in the pool.
    fn on_page_loaded(&mut self, _state: &State, _page: PageId) {}

    /// A page left the pool.
    fn on_page_evicted(&mut self, _state: &State, _page: PageId) {}

    /// A chunk was handed to a worker of a scan.
    fn on_delivered(&mut self, _state: &State, _scan: ScanId, _chunk: ChunkIndex) {}

    /// The next load. All pages of the plan MUST be cold pages of its chunk, and its scan MUST need one of them.
    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan>;

    /// The next load for a scan of pages that are all in the pools of other servers: one of its [`nearby`](Scan::nearby)
    /// chunks.
    fn choose_nearby_load(&mut self, _state: &State, _scan: ScanId) -> Option<LoadPlan> {
        None
    }

    /// The pages to evict for a request, in that order, until they make enough bytes or no other page may be evicted.
    /// Every page MUST satisfy [`EvictionRequest::may_evict`].
    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId>;

    /// The most bytes of victims that [`Self::choose_victims`] finds at [`Strictness::Strict`] for any load of a scan
    /// that waits for data, or of one that does not; or at least `enough`, if there may be that many. A load that needs
    /// more is not tried.
    fn victim_bytes_max(&mut self, _state: &State, _waits: bool, _enough: u64) -> u64 {
        u64::MAX
    }

    /// The sizes below which scans are short and tiny. Short scans bypass the queue for processors: they are handed
    /// chunks although enough workers are at work, up to twice as many in all. Tiny scans also bypass the queue of the
    /// device: their loads are urgent and have slots of their own, as many as the others have.
    fn priority_bounds(&self, _state: &State) -> PriorityBounds {
        PriorityBounds::default()
    }

    /// Whether the policy schedules processors, too: no more workers than [`crate::Config::active_workers_max`] are at
    /// work, and [`Self::prefer_worker`] chooses the next. Otherwise every worker with a ready chunk is handed it, first
    /// come, first served.
    fn schedules_workers(&self) -> bool {
        false
    }

    /// The index in `_ready` of the scan that is served first, among scans with a waiting worker and a ready chunk.
    fn prefer_worker(&self, _state: &State, _ready: &[ScanId]) -> usize {
        0
    }

    /// The deliverable chunk that a scan is handed; `None` if it keeps waiting.
    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex>;
}

/// A request for space in the pool.
#[derive(Clone, Copy, Debug)]
pub struct EvictionRequest<'a> {
    /// The load that needs the space, whose own chunk stays; `None` when the pool shrinks.
    pub plan: Option<&'a LoadPlan>,
    /// Bytes to be evicted.
    pub bytes: u64,
    /// Which needed pages may be victims.
    pub strictness: Strictness,
}

impl EvictionRequest<'_> {
    /// Whether a page may be evicted at all: it is not in use, and not of the chunk that the load completes.
    #[must_use]
    pub fn may_evict(&self, state: &State, id: PageId) -> bool {
        state.is_evictable(id) && !self.plan.is_some_and(|plan| self.completes(state, plan, id))
    }

    fn completes(&self, state: &State, plan: &LoadPlan, id: PageId) -> bool {
        let Some(scan) = state.scan(plan.scan) else { return false };
        state.chunks_read(scan, id).any(|chunk| chunk == plan.chunk)
    }

    /// The pages of `candidates` that may be evicted, until they make the bytes asked for.
    pub fn fill(&self, state: &State, candidates: impl IntoIterator<Item = PageId>) -> Vec<PageId> {
        let mut victims = VictimList::new(*self);
        victims.take_all(state, candidates);
        victims.into_pages()
    }
}

/// The pages chosen for a request so far.
struct VictimList<'a> {
    request: EvictionRequest<'a>,
    pages: Vec<PageId>,
    taken: BTreeSet<PageId>,
    bytes: u64,
}

impl<'a> VictimList<'a> {
    fn new(request: EvictionRequest<'a>) -> Self {
        Self { request, pages: Vec::new(), taken: BTreeSet::new(), bytes: 0 }
    }

    fn enough(&self) -> bool {
        self.bytes >= self.request.bytes
    }

    fn may_take(&self, state: &State, id: PageId) -> bool {
        !self.taken.contains(&id) && self.request.may_evict(state, id)
    }

    fn take(&mut self, state: &State, id: PageId) {
        if self.may_take(state, id) {
            self.taken.insert(id);
            self.bytes += state.bytes_of(id);
            self.pages.push(id);
        }
    }

    fn take_all(&mut self, state: &State, candidates: impl IntoIterator<Item = PageId>) {
        let mut candidates = candidates.into_iter();
        while !self.enough()
            && let Some(id) = candidates.next()
        {
            self.take(state, id);
        }
    }

    fn into_pages(self) -> Vec<PageId> {
        self.pages
    }
}
