//! `relevance`: the published scores, with processors scheduled too. `docs/scheduling.md` explains it.
//!
//! Differences from [`Relevance2007`]:
//! - Only as many workers are handed chunks as there are processors, least work left first; work counts less the more of
//!   it is ready (`Work`). Scans that would crawl side by side finish one after the other.
//! - Where the device has free slots, waiting scans read further ahead.
//! - Among chunks that help as many starved scans, those that other scans need as well are read first. Ties go to the
//!   chunk after the last one read, so that reads continue where the device stands.
//! - Decoded chunks are handed out first: they are decoded once for all scans that take them.
//! - Chunks on which a scan of the same computation works are handed out last: its result may make them unneeded.
//! - The next uses of pages by scans in order, and the expected reuse of tables, count when pages are evicted.

use std::cmp::Reverse;

use crate::ids::{ChunkIndex, PageId, ScanId, ScanPosition, TableId, Time};
use crate::policy::next_use::NextUseIndex;
use crate::policy::priority::priority_bounds;
use crate::policy::ranking::Score;
use crate::policy::relevance_2007::Relevance2007;
use crate::policy::reuse::ReuseEstimator;
use crate::policy::scoring::{LoadRelevance, Scores, helped_by, plan, waited_loads};
use crate::policy::work::Work;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy, Strictness};
use crate::scan::{PriorityBounds, Scan};
use crate::set::IndexSet;
use crate::state::{CandidateKind, State};

/// The weight of a scan that needs a chunk but is not starved, relative to 1 for a starved one. It decides among chunks
/// that help the same number of starved scans, as long as fewer than a hundred others need them.
const NON_STARVED_WEIGHT: f64 = 0.01;

/// A scan in order that has less than this part of the average left is not held together with the others: it ends soon,
/// so its reads are of no use to those behind it.
const NEARLY_DONE_DIVISOR: usize = 4;

/// The turns of its own that a scan waits, at most, while scans with more decoded go first. Decoded columns may be kept for long:
/// without a bound it would wait as long as such scans keep coming.
const TURNS_WAITED_MAX: f64 = 2.0;

/// Decoded chunks that a decision looks at: the bound on its cost.
const DECODED_MAX: usize = 256;

/// Waiting scans that a decision looks at to read further ahead: the bound on its cost.
const WAITING_MAX: usize = 128;

/// The policy `relevance`.
#[derive(Clone, Debug, Default)]
pub struct Relevance {
    paper: Relevance2007,
    /// The next uses of pages by scans in order.
    in_order: NextUseIndex,
    /// The expected reuse of tables.
    reuse: ReuseEstimator,
}

/// The rank of a scan to be read for, highest first: overdue scans, the one that has waited longest in front; then the
/// others by [`LoadPriority::score`].
type LoadRank = (Option<Reverse<Time>>, Score);

/// Chunks in the pools of other servers that a decision looks at.
const NEARBY_MAX: usize = 64;

/// Computes the [`LoadRank`] of scans of a kind.
struct LoadPriority<'a> {
    state: &'a State,
    kind: CandidateKind,
    in_order_needed: usize,
}

impl LoadPriority<'_> {
    fn rank(&self, since: Option<Time>, needed: usize) -> LoadRank {
        let overdue = since.filter(|&since| self.state.is_overdue(since)).map(Reverse);
        (overdue, self.score(since, needed))
    }

    /// The score as in the paper: fewest chunks left first, and waiting gains a chunk for each load. Scans in order
    /// count the number of chunks that they have left on average, unless one is nearly done: those that advance
    /// together, one a little behind the other, share their reads.
    fn score(&self, since: Option<Time>, needed: usize) -> Score {
        let waited_ns = since.map_or(0, |since| self.state.now().since(since));
        let weight = f64::from(self.kind.weight);
        let gained = weight * waited_loads(self.state, waited_ns);
        let together =
            self.kind.goes_in_order && needed * NEARLY_DONE_DIVISOR > self.in_order_needed;
        let needed = if together { self.in_order_needed } else { needed };
        Score(gained - needed as f64 / weight)
    }
}

/// The scan to read for.
fn choose_scan<'a>(state: &'a State, attempt: &Attempt<'_>) -> Option<&'a Scan> {
    let in_order_needed = state.in_order_needed();
    let open = state.load_candidates().filter(|(kind, _)| !attempt.slots.is_closed(kind.device));
    let highest = open.filter_map(|(&kind, load_candidates)| {
        let priority = LoadPriority { state, kind, in_order_needed };
        let rank = |id: ScanId| {
            let scan = state.scan(id).filter(|scan| attempt.admits(scan))?;
            Some(priority.rank(scan.starving_since(), scan.chunks_left()))
        };
        load_candidates.highest(rank, |since, needed| priority.rank(since, needed))
    });
    highest.max().and_then(|(_, Reverse(id))| state.scan(id))
}

/// The scan to read further ahead for, if all missing chunks are arriving and less than half of the device's slots are
/// taken: among those that have waited longest, the one with the fewest arriving chunks. Otherwise a device that serves
/// many requests at once would idle.
fn choose_ahead<'a>(state: &'a State, attempt: &Attempt<'_>) -> Option<&'a Scan> {
    if attempt.strictness > Strictness::Strict || !attempt.without_space.is_empty() {
        return None;
    }
    let starving = state.waiting().take(WAITING_MAX).filter(|scan| !scan.is_deliverable());
    let may_load =
        starving.filter(|scan| attempt.slots.admit_ahead(scan) && scan.loadable().next().is_some());
    may_load.min_by_key(|scan| (scan.arriving(), scan.id()))
}

/// The deliverable chunk with the most decoded column groups; among equals, one on which no scan of the same computation
/// works, then the one that the fewest scans need.
fn most_decoded(state: &State, scan: &Scan) -> Option<ChunkIndex> {
    let classes = state.table(scan.table()).classes();
    let rank = |&chunk: &ChunkIndex| {
        (state.is_in_work(scan, chunk), classes.class_of(chunk).key().scans.len())
    };
    let chunks = scan.most_decoded_chunks().take(DECODED_MAX);
    chunks.filter(|&chunk| scan.could_be_handed(chunk)).min_by_key(rank)
}

/// This chunk, or another deliverable one if a scan of the same computation works on it. No more chunks are looked at than
/// there are workers.
fn unless_in_work(state: &State, scan: &Scan, chunk: ChunkIndex) -> ChunkIndex {
    if !state.is_in_work(scan, chunk) {
        return chunk;
    }
    scan.deliverable().find(|&other| !state.is_in_work(scan, other)).unwrap_or(chunk)
}

/// The chunk that helps most starved scans for the fewest bytes, then most others; among equals, the one behind the
/// last one read, so that the device continues where it stands.
fn choose_chunk(state: &State, scan: &Scan, helped: &IndexSet<ScanPosition>) -> Option<ChunkIndex> {
    let relevance = LoadRelevance {
        scores: Scores::of(state.table(scan.table())),
        helped,
        benefit: |helped, served| helped as f64 + NON_STARVED_WEIGHT * (served - helped) as f64,
    };
    relevance.choose_chunk(state, scan, |table, class| {
        table.classes().next_chunk(class, table.last_load())
    })
}

impl Policy for Relevance {
    fn name(&self) -> &'static str {
        "relevance"
    }

    fn on_scan_started(&mut self, state: &State, scan: ScanId) {
        let Some(scan) = state.scan(scan) else { return };
        if !scan.is_remote() {
            self.reuse.note(state, scan); // Its query has said what it needs, if that is much.
        }
        if scan.goes_in_order() {
            self.in_order.start(state, scan);
        }
    }

    fn on_scan_extended(&mut self, state: &State, scan: ScanId, chunks: &[ChunkIndex]) {
        let Some(scan) = state.scan(scan) else { return };
        if scan.goes_in_order() {
            self.in_order.extend(state, scan, chunks);
        }
    }

    fn on_table_changed(&mut self, table: TableId) {
        self.paper.table_changed(table);
        self.reuse.table_changed(table);
    }

    fn on_table_removed(&mut self, table: TableId) {
        self.reuse.forget(table);
    }

    fn on_scan_ended(&mut self, scan: ScanId) {
        self.in_order.remove(scan);
    }

    fn on_page_loaded(&mut self, state: &State, page: PageId) {
        if !self.in_order.is_empty() {
            self.in_order.insert(state, page);
        }
    }

    fn on_page_evicted(&mut self, _state: &State, page: PageId) {
        self.in_order.remove_page(page);
    }

    fn on_delivered(&mut self, state: &State, scan: ScanId, chunk: ChunkIndex) {
        if let Some(scan) = state.scan(scan).filter(|_| !self.in_order.is_empty()) {
            for page in state.pages_of(scan, chunk) {
                self.in_order.insert(state, page);
            }
        }
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let scan = choose_scan(state, attempt).or_else(|| choose_ahead(state, attempt))?;
        let helped = helped_by(state, scan);
        let chunk = choose_chunk(state, scan, &helped)?;
        Some(plan(state, scan, &helped, chunk))
    }

    fn choose_nearby_load(&mut self, state: &State, scan: ScanId) -> Option<LoadPlan> {
        let scan = state.scan(scan)?;
        let helped = helped_by(state, scan);
        let table = state.table(scan.table());
        let helps = |&chunk: &ChunkIndex| {
            table.classes().class_of(chunk).key().scans.intersection_len(&helped)
        };
        let chunk = scan.nearby().iter().take(NEARBY_MAX).max_by_key(helps)?;
        Some(LoadPlan::of_missing(state, scan, chunk))
    }

    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId> {
        let in_order = (!self.in_order.is_empty()).then_some(&mut self.in_order);
        self.paper.victims(state, request, in_order, self.reuse.unneeded(state))
    }

    fn victim_bytes_max(&mut self, state: &State, waits: bool, enough: u64) -> u64 {
        let in_order = (!self.in_order.is_empty()).then_some(&mut self.in_order);
        self.paper.bytes_max(state, (waits, enough), in_order, self.reuse.unneeded(state))
    }

    fn priority_bounds(&self, state: &State) -> PriorityBounds {
        priority_bounds(state)
    }

    fn schedules_workers(&self) -> bool {
        true
    }

    /// The scan that has the largest part of a chunk decoded, so that scans meet at a chunk while it is in the processors' caches;
    /// then the one with least work left. Where any columns are decoded, a scan that has waited for too long goes first.
    fn prefer_worker(&self, state: &State, ready: &[ScanId]) -> usize {
        let work = Work::of(state);
        let scan = |position: usize| state.scan(ready[position]).expect("a waiting scan runs");
        let is_decoded = (0..ready.len()).any(|position| scan(position).decoded_percent() > 0);
        let rank = |&position: &usize| {
            let scan = scan(position);
            let turns = work.turns(state, scan, scan.turn_since());
            let waited = (is_decoded && turns >= TURNS_WAITED_MAX).then_some(Score(turns));
            (Reverse(waited), Reverse(scan.decoded_percent()), Score(work.left(state, scan)))
        };
        (0..ready.len()).min_by_key(rank).unwrap_or(0)
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        let scan = state.scan(scan)?;
        let chunk = most_decoded(state, scan).or_else(|| self.paper.delivery(state, scan))?;
        Some(unless_in_work(state, scan, chunk))
    }
}
