//! What to read next, what to evict, what to hand to whom: one file a policy.
//!
//! A policy only chooses. The state machine keeps the safety rules I1 to I6 whatever it chooses.

mod attach;
mod elevator;
mod kind;
mod merge;
mod next_use;
mod normal;
mod page_map;
mod predictive;
mod priority;
mod ranking;
mod relevance;
mod relevance_2004;
mod relevance_2007;
mod reuse;
mod sequence;
mod victims;

use std::collections::BTreeSet;
use std::fmt;

use crate::ids::{ChunkIndex, PageId, ScanId, TableId};
use crate::scan::{PriorityBounds, Scan};
use crate::slots::Slots;
use crate::state::State;

pub use attach::Attach;
pub use elevator::Elevator;
pub use kind::{PolicyKind, UnknownPolicy};
pub use normal::Normal;
pub use predictive::{Predictive, Switches};
pub use relevance::Relevance;
pub use relevance_2004::Relevance2004;
pub use relevance_2007::{Relevance2007, Scores};

/// Cold pages of one chunk to be read, and for whom.
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
    /// All that a scan lacks of a chunk.
    fn of_missing(state: &State, scan: &Scan, chunk: ChunkIndex) -> Self {
        let pages = state.pages_of(scan, chunk);
        let pages = pages.into_iter().filter(|&id| state.is_cold(id)).collect();
        Self { scan: scan.id(), chunk, pages }
    }
}

/// How far the choice of victims may go [CS07 Figure 3, `findFreeSlot`; slip 7 in `docs/papers.md`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Strictness {
    /// Nothing that the scan we load for needs, nor what a starved scan could use at once.
    Strict,
    /// What a starved scan could use may go.
    MayStarve,
    /// So may what the scan we load for needs later.
    MayEvictOwn,
}

impl Strictness {
    /// All of them, strictest first.
    pub const ALL: [Strictness; 3] =
        [Strictness::Strict, Strictness::MayStarve, Strictness::MayEvictOwn];
}

/// One try to find a load that fits.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// How far the choice of victims will go.
    pub strictness: Strictness,
    /// Scans whose load found no room in this round.
    pub without_room: &'a BTreeSet<ScanId>,
    /// What the loads under way leave of the devices.
    pub slots: &'a Slots,
}

impl Attempt<'_> {
    /// Whether a load for this scan may be proposed.
    #[must_use]
    pub fn admits(&self, scan: &Scan) -> bool {
        self.slots.admit(scan) && !self.without_room.contains(&scan.id())
    }
}

/// A scheduling policy.
pub trait Policy: fmt::Debug + Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// A scan was registered.
    fn on_scan_started(&mut self, _state: &State, _scan: ScanId) {}

    /// A running scan needs more chunks.
    fn on_scan_extended(&mut self, _state: &State, _scan: ScanId) {}

    /// A scan was taken off.
    fn on_scan_ended(&mut self, _scan: ScanId) {}

    /// What scans need of a table, what of it is in the pool, or when that was used has changed since victims were last
    /// chosen; or the table is gone.
    fn on_table_changed(&mut self, _table: TableId) {}

    /// A table was taken off, after its last scan.
    fn on_table_removed(&mut self, _table: TableId) {}

    /// A load that it chose was started; `plan` says how much of it.
    fn on_load_started(&mut self, _state: &State, _plan: &LoadPlan) {}

    /// A page arrived in the pool.
    fn on_page_loaded(&mut self, _state: &State, _page: PageId) {}

    /// A page left the pool.
    fn on_page_evicted(&mut self, _state: &State, _page: PageId) {}

    /// A chunk was handed to a worker of a scan.
    fn on_delivered(&mut self, _state: &State, _scan: ScanId, _chunk: ChunkIndex) {}

    /// What to read next. All pages of the plan MUST be cold pages of its chunk, and its scan MUST need one of them.
    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan>;

    /// Which pages to evict for `plan`, first the ones to go first, until they make `bytes` or nothing else may go.
    /// Every page MUST satisfy [`EvictionRequest::may_go`].
    fn choose_victims(&mut self, state: &State, room: &EvictionRequest<'_>) -> Vec<PageId>;

    /// Which scans are short beside others. Short ones cut the line at the processors: they are handed chunks although
    /// enough workers are at work, twice as many in all. Tiny ones also do at the device, since what they want takes
    /// little: they are read for ahead of what is queued, although enough is being read for others; twice as much in all.
    fn priority_bounds(&self, _state: &State) -> PriorityBounds {
        PriorityBounds::default()
    }

    /// Whether it schedules processors, too: no more workers than [`crate::Config::active_workers_max`] are at work, and
    /// [`Self::prefer_worker`] says who is next. Otherwise whoever can go on does, first come first served.
    fn schedules_workers(&self) -> bool {
        false
    }

    /// Which of these scans, each with a worker that waits for a chunk that is there, goes on first: its position.
    fn prefer_worker(&self, _state: &State, _ready: &[ScanId]) -> usize {
        0
    }

    /// Which of its deliverable chunks a scan is handed, if any yet.
    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex>;
}

/// The room that a load needs.
#[derive(Clone, Copy, Debug)]
pub struct EvictionRequest<'a> {
    /// The load; its own chunk is not broken up for it. `None` when the pool shrinks.
    pub plan: Option<&'a LoadPlan>,
    /// Bytes that have to go.
    pub bytes: u64,
    /// How far the choice may go.
    pub strictness: Strictness,
}

impl EvictionRequest<'_> {
    /// Whether a page may go at all: nobody uses it, and it is not part of what the load completes.
    #[must_use]
    pub fn may_go(&self, state: &State, id: PageId) -> bool {
        state.is_evictable(id) && !self.plan.is_some_and(|plan| self.completes(state, plan, id))
    }

    fn completes(&self, state: &State, plan: &LoadPlan, id: PageId) -> bool {
        let Some(scan) = state.scan(plan.scan) else { return false };
        state.chunks_read(scan, id).any(|chunk| chunk == plan.chunk)
    }

    /// Takes pages from `candidates` that may go, until they make the bytes asked for.
    pub fn fill(&self, state: &State, candidates: impl IntoIterator<Item = PageId>) -> Vec<PageId> {
        let mut chosen = Chosen::new(*self);
        chosen.take_all(state, candidates);
        chosen.into_pages()
    }
}

/// Pages that are to go, until they make enough room.
struct Chosen<'a> {
    room: EvictionRequest<'a>,
    pages: Vec<PageId>,
    taken: BTreeSet<PageId>,
    bytes: u64,
}

impl<'a> Chosen<'a> {
    fn new(room: EvictionRequest<'a>) -> Self {
        Self { room, pages: Vec::new(), taken: BTreeSet::new(), bytes: 0 }
    }

    fn enough(&self) -> bool {
        self.bytes >= self.room.bytes
    }

    fn may_take(&self, state: &State, id: PageId) -> bool {
        !self.taken.contains(&id) && self.room.may_go(state, id)
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
