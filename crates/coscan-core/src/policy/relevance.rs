//! `relevance`: the paper's scores, with processors scheduled too. `docs/scheduling.md` explains it on a page.
//!
//! What differs from [`Relevance2007`]:
//! - Chunks are handed to as many workers as there are processors for, first to whoever has least work left, counting
//!   less of it the more of it is in the pool (`Work`). Scans that would crawl together finish one after the other.
//! - Where the device could take more loads, scans that wait read further ahead.
//! - A chunk that other scans need too, though they do not wait, is read before one that they do not; of equal ones the
//!   chunk behind the last one is read, so that reads go on where the device stands.
//! - What is decoded now is handed out first: it is decoded once for all who take it now.

use std::cmp::Reverse;

use crate::classes::Class;
use crate::ids::{ChunkIndex, PageId, ScanId, SlotIndex, TableId, Time};
use crate::policy::next_use::NextUseIndex;
use crate::policy::priority::priority_bounds;
use crate::policy::ranking::{Score, best_first};
use crate::policy::relevance_2007::{Relevance2007, helped_by, overlapping, plan};
use crate::policy::reuse::ReuseEstimator;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy, Strictness};
use crate::scan::{Order, PriorityBounds, Scan};
use crate::set::IndexSet;
use crate::state::{CandidateKind, State};

/// What a scan counts that needs a chunk, but has enough to go on with, beside one that waits.
const LATER: f64 = 0.01;

/// A scan in order has much less left than the others that has so many times less.
const MUCH_LESS: usize = 4;

/// How many decoded chunks a decision looks at.
const DECODED_MAX: usize = 256;

/// How many scans that wait a decision looks at to read further ahead.
const WAITING_MAX: usize = 128;

/// The policy `relevance`.
#[derive(Clone, Debug, Default)]
pub struct Relevance {
    paper: Relevance2007,
    /// When the scans in order come to the pages.
    in_order: NextUseIndex,
    /// How often scans come to the tables.
    reuse: ReuseEstimator,
}

/// Average loads that a scan has waited, shared by all running scans (slip 5 in `docs/papers.md`).
fn waited_loads(state: &State, waited_ns: u64) -> f64 {
    let loads = state.load_ns().map_or(0.0, |load_ns| waited_ns as f64 / load_ns as f64);
    loads / state.scan_count() as f64
}

/// Whom to read for, largest first: who has waited too long, longest in front; then by [`Reading::score`].
type ReadingRank = (Option<Reverse<Time>>, Score);

/// What the rank of a scan that wants something to be read depends on, beside how long it has waited and what it needs.
struct Reading<'a> {
    state: &'a State,
    kind: CandidateKind,
    in_order_needed: usize,
}

impl Reading<'_> {
    fn rank(&self, since: Option<Time>, needed: usize) -> ReadingRank {
        let overdue = since.filter(|&since| self.state.is_overdue(since)).map(Reverse);
        (overdue, self.score(since, needed))
    }

    /// As in the paper, who has fewest chunks left, and who waits gains one for each load that it waited. Scans in order
    /// count as much as they do on average, unless they have much less left: those that go on together, one a little
    /// behind the other, read once for all.
    fn score(&self, since: Option<Time>, own: usize) -> Score {
        let waited_ns = since.map_or(0, |since| self.state.now().since(since));
        let weight = f64::from(self.kind.weight);
        let gained = weight * waited_loads(self.state, waited_ns);
        let together = self.kind.goes_in_order && own * MUCH_LESS > self.in_order_needed;
        let needed = if together { self.in_order_needed } else { own };
        Score(gained - needed as f64 / weight)
    }
}

/// The scan to read for.
fn choose_scan<'a>(state: &'a State, attempt: &Attempt<'_>) -> Option<&'a Scan> {
    let in_order_needed = state.in_order_needed();
    let open = state.load_candidates().filter(|(kind, _)| !attempt.slots.is_closed(kind.device));
    let highest = open.filter_map(|(&kind, load_candidates)| {
        let reading = Reading { state, kind, in_order_needed };
        let rank = |id: ScanId| {
            let scan = state.scan(id).filter(|scan| attempt.admits(scan))?;
            Some(reading.rank(scan.starving_since(), scan.needed().len()))
        };
        load_candidates.highest(rank, |since, needed| reading.rank(since, needed))
    });
    highest.max().and_then(|(_, Reverse(id))| state.scan(id))
}

/// Where all that want something to be read have it on its way and the device could take more loads: of the scans that
/// have waited longest, the one with least on its way. A device that serves many requests at once is idle otherwise.
fn choose_ahead<'a>(state: &'a State, attempt: &Attempt<'_>) -> Option<&'a Scan> {
    if attempt.strictness > Strictness::Strict || !attempt.without_room.is_empty() {
        return None;
    }
    let starving = state.waiting().take(WAITING_MAX).filter(|scan| !scan.is_deliverable());
    let may_load = starving.filter(|scan| attempt.admits(scan) && scan.loadable().next().is_some());
    may_load.min_by_key(|scan| (scan.arriving(), scan.id()))
}

/// How fast chunks are done now.
struct Work {
    /// Nanoseconds that scans take for a chunk on average: what a scan that has done none yet is taken to need.
    chunk_ns: f64,
    /// Nanoseconds until it is somebody's turn again: until a worker has done a chunk, or a load has ended if that takes
    /// longer. Where everything is in the pool loads say nothing of how long a scan has to wait.
    turn_ns: f64,
}

impl Work {
    fn of(state: &State) -> Self {
        let chunk_ns = state.average_chunk_ns().unwrap_or(1.0);
        let active = state.active_workers().max(1) as f64;
        let load_ns = state.load_ns().unwrap_or(0) as f64;
        Self { chunk_ns, turn_ns: load_ns.max(chunk_ns / active) }
    }

    /// Nanoseconds of work that a scan has left, divided by one plus the percentage of it that is in the pool: what is
    /// there should be used before it goes. Who waits for a processor has one chunk less left for each turn of its share
    /// that it waited.
    fn left(&self, state: &State, scan: &Scan) -> f64 {
        let waited_ns = scan.waiting_since().map_or(0, |since| state.now().since(since));
        let waited_turns = waited_ns as f64 / self.turn_ns / state.scan_count() as f64;
        let weight = f64::from(scan.weight());
        let needed = scan.needed().len() as f64;
        let left = (needed - weight * waited_turns).max(0.5);
        let chunk_ns = scan.chunk_ns().map_or(self.chunk_ns, |ns| ns as f64);
        let percent_there = 100.0 * (scan.ready_chunks() as f64 / (needed + 1.0)).min(1.0);
        left * chunk_ns / weight / (1.0 + percent_there)
    }
}

/// The deliverable chunk of which most column groups are decoded, of equals the one that fewest scans need.
fn most_decoded(state: &State, scan: &Scan) -> Option<ChunkIndex> {
    let classes = state.table(scan.table()).classes();
    let needing = |&chunk: &ChunkIndex| classes.class_of(chunk).key().scans.len();
    let chunks = scan.most_decoded_chunks().take(DECODED_MAX);
    chunks.filter(|&chunk| scan.could_be_handed(chunk)).min_by_key(needing)
}

/// The chunk that helps most waiting scans for the fewest bytes, then most others.
fn choose_chunk(state: &State, scan: &Scan, helped: &IndexSet<SlotIndex>) -> Option<ChunkIndex> {
    if scan.order() == Order::InOrder || scan.is_sparse() {
        return scan.loadable().next();
    }
    let table = state.table(scan.table());
    let one_group = table.group_count() == 1;
    let overlapping = if one_group { IndexSet::new() } else { overlapping(state, scan) };
    let count = |helped: usize, all: usize| helped as f64 + LATER * (all - helped) as f64;
    let bound = |scans: usize| match one_group {
        true => Score(count(helped.len().min(scans), scans)),
        false => Score(f64::INFINITY),
    };
    let score = |class: &Class| {
        let key = class.key();
        if !key.scans.contains(scan.slot()) || key.covers(scan.groups()) {
            return None;
        }
        if one_group {
            return Some(Score(count(key.scans.intersection_len(helped), key.scans.len())));
        }
        let here = key.scans.intersection(helped);
        let groups = table.classes().groups_of(&here);
        let cold_bytes = state.cold_bytes(scan.table(), class.first(), &groups);
        let all = key.scans.intersection_len(&overlapping);
        Some(Score(count(here.len(), all) / cold_bytes.max(1) as f64))
    };
    let best = best_first(table.classes().to_read(), bound, score).next();
    best.map(|(_, class)| table.classes().next_chunk(class, table.last_load()))
        .or_else(|| scan.loadable().next())
}

impl Policy for Relevance {
    fn name(&self) -> &'static str {
        "relevance"
    }

    fn on_scan_started(&mut self, state: &State, scan: ScanId) {
        if let Some(scan) = state.scan(scan) {
            self.reuse.note(state, scan);
        }
        self.on_scan_extended(state, scan);
    }

    fn on_scan_extended(&mut self, state: &State, scan: ScanId) {
        let Some(scan) = state.scan(scan) else { return };
        if scan.goes_in_order() {
            self.in_order.add(state, scan);
        }
    }

    fn on_table_changed(&mut self, table: TableId) {
        self.paper.table_changed(table);
        self.reuse.changed(table);
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

    fn choose_victims(&mut self, state: &State, room: &EvictionRequest<'_>) -> Vec<PageId> {
        let in_order = (!self.in_order.is_empty()).then_some(&mut self.in_order);
        self.paper.victims(state, room, in_order, self.reuse.unwanted(state))
    }

    fn priority_bounds(&self, state: &State) -> PriorityBounds {
        priority_bounds(state)
    }

    fn schedules_workers(&self) -> bool {
        true
    }

    /// First whoever can use most of what is decoded now, so that scans meet at a chunk while it is decoded and in the
    /// processors' caches; then whoever has least left.
    fn prefer_worker(&self, state: &State, ready: &[ScanId]) -> usize {
        let work = Work::of(state);
        let rank = |&position: &usize| {
            let scan = state.scan(ready[position]).expect("a waiting scan runs");
            let left = Score(work.left(state, scan));
            (Reverse(scan.most_decoded()), left)
        };
        (0..ready.len()).min_by_key(rank).unwrap_or(0)
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        let scan = state.scan(scan)?;
        most_decoded(state, scan).or_else(|| self.paper.delivery(state, scan))
    }
}
