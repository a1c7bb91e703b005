//! `relevance`: for the scan that needs it most, read the chunk that helps most scans for the fewest bytes; evict what
//! almost starved scans miss least; hand out what few others want [CS07 §4, §6.2, Figures 3 and 11].

use std::collections::BTreeMap;

use crate::ids::{ChunkIndex, GroupIndex, PageId, ScanId, TableId};
use crate::policy::{Attempt, LoadPlan, Policy, Room, Strictness};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;

/// Which set of scores is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scores {
    /// Chunks are whole: count scans [CS07 Figure 3].
    Row,
    /// Chunks have columns of different sizes: weigh scans against bytes [CS07 Figure 11].
    Column,
}

/// The policy `relevance`.
#[derive(Clone, Debug, Default)]
pub struct Relevance {
    /// The scores for all tables; by default those that fit a table's layout.
    pub scores: Option<Scores>,
}

/// A score above that of any number of scans that only come second.
fn first_second(first: usize, second: usize) -> f64 {
    const SCANS_MAX: f64 = 65_536.0;
    first as f64 * SCANS_MAX + second as f64
}

impl Relevance {
    fn scores(&self, state: &State, table: TableId) -> Scores {
        let one_group = state.table(table).layout().group_count() == 1;
        self.scores.unwrap_or(if one_group { Scores::Row } else { Scores::Column })
    }

    /// Short scans first, but those that wait gain a chunk for every average load they have waited, shared by all
    /// running scans (`queryRelevance`; slip 5 in the papers gives the unit).
    fn scan_score(state: &State, scan: &Scan) -> f64 {
        let waited_ns = scan.starving_since().map_or(0, |since| state.now().since(since));
        let waited_loads = state.load_ns().map_or(0.0, |load_ns| waited_ns as f64 / load_ns as f64);
        waited_loads / state.scans().count() as f64 - scan.needed().len() as f64
    }

    /// Starved scans that a load for `scan` may help, `scan` itself among them.
    fn helped<'a>(state: &'a State, scan: &'a Scan) -> Vec<&'a Scan> {
        let overlaps = |other: &&Scan| other.groups().intersects(scan.groups());
        let helps =
            |other: &&Scan| other.id() == scan.id() || other.is_starved() && overlaps(other);
        state.scans_of(scan.table()).filter(helps).collect()
    }

    /// `loadRelevance`: larger is read first.
    fn load_score(
        &self,
        state: &State,
        table: TableId,
        helped: &[&Scan],
        chunk: ChunkIndex,
    ) -> f64 {
        let here = helped.iter().copied().filter(|scan| scan.needed().contains(chunk));
        let count = here.clone().count();
        match self.scores(state, table) {
            Scores::Row => first_second(count, state.interested(table, chunk).count()),
            Scores::Column => {
                let cold_bytes = state.cold_bytes(table, chunk, &union_of_groups(here));
                count as f64 / cold_bytes.max(1) as f64
            }
        }
    }

    /// `keepRelevance`: smaller goes first.
    fn keep_score(&self, state: &State, table: TableId, chunk: ChunkIndex) -> f64 {
        let almost_starved = state.interested(table, chunk).filter(|scan| scan.is_almost_starved());
        match self.scores(state, table) {
            Scores::Row => {
                first_second(almost_starved.count(), state.interested(table, chunk).count())
            }
            Scores::Column => {
                let groups = union_of_groups(almost_starved.clone());
                almost_starved.count() as f64
                    / state.cached_bytes(table, chunk, &groups).max(1) as f64
            }
        }
    }

    /// `useRelevance`: larger is handed out first.
    fn use_score(&self, state: &State, scan: &Scan, chunk: ChunkIndex) -> f64 {
        let interested = state.interested(scan.table(), chunk);
        match self.scores(state, scan.table()) {
            Scores::Row => -(interested.count() as f64),
            Scores::Column => {
                let overlapping =
                    interested.filter(|other| other.groups().intersects(scan.groups()));
                let groups = union_of_groups(overlapping.clone());
                state.cached_bytes(scan.table(), chunk, &groups) as f64
                    / overlapping.count().max(1) as f64
            }
        }
    }

    /// The most of its column groups that are decoded now of a chunk that the scan could be handed.
    fn most_decoded(state: &State, scan: &Scan) -> usize {
        let chunks = state.decoded_chunks(scan.table());
        let could = chunks.filter(|&chunk| {
            scan.is_available(chunk)
                && (scan.order() == Order::Any || scan.needed().first() == Some(chunk))
        });
        could
            .map(|chunk| state.decoded_groups(scan.table(), chunk, scan.groups()))
            .max()
            .unwrap_or(0)
    }

    /// The pages to read of a chunk: what the scan needs, small ones first so that it can go on early, then what the
    /// other scans that it helps need.
    fn pages_to_load(
        state: &State,
        scan: &Scan,
        helped: &[&Scan],
        chunk: ChunkIndex,
    ) -> Vec<PageId> {
        let here = helped.iter().copied().filter(|scan| scan.needed().contains(chunk));
        let groups = union_of_groups(here);
        let mut pages = state.pages(scan.table(), chunk, &groups);
        pages.retain(|&id| state.is_cold(id));
        let layout = state.table(scan.table()).layout();
        let own = |id: &PageId| scan.groups().contains(layout.group_of(id.page));
        let bytes: u64 = pages.iter().map(|&id| state.bytes_of(id)).sum();
        if bytes > state.pool_bytes() / 2 {
            pages.retain(own);
        }
        pages.sort_by_key(|id| (!own(id), state.bytes_of(*id), *id));
        pages
    }

    /// Pages in the pool that may go, least kept first: a page is kept as well as the best of its chunks.
    fn pages_to_evict(&self, state: &State, room: &Room<'_>) -> Vec<PageId> {
        let mut keeps: BTreeMap<(TableId, ChunkIndex), Keep> = BTreeMap::new();
        let mut keep = |table, &chunk: &ChunkIndex| {
            *keeps.entry((table, chunk)).or_insert_with(|| self.keep(state, table, chunk))
        };
        let candidates = state.cached_pages().filter(|&id| room.may_go(state, id));
        let mut ranked: Vec<_> = candidates
            .map(|id| {
                let chunks = state.table(id.table).layout().chunks_of(id.page);
                (chunks.iter().map(|chunk| keep(id.table, chunk)).max(), id)
            })
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, id)| id).collect()
    }

    fn keep(&self, state: &State, table: TableId, chunk: ChunkIndex) -> Keep {
        Keep {
            // Scores are not negative, and the bits of such floats are ordered as they are.
            score: self.keep_score(state, table, chunk).to_bits(),
            interested: state.interested(table, chunk).count(),
            table,
            chunk,
        }
    }
}

/// What decides when a chunk goes, smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Keep {
    score: u64,
    interested: usize,
    table: TableId,
    chunk: ChunkIndex,
}

/// What scans lose by the victims chosen so far [CS07 Figure 3, `usefulForStarvedQuery`].
///
/// A load for a scan that waits may take from all who are not starved, since it ends in a delivery. One that reads
/// ahead must not make another scan starved: that one would read ahead in its turn, and so on without end.
struct Losses<'a> {
    state: &'a State,
    strictness: Strictness,
    trigger: Option<ScanId>,
    trigger_waits: bool,
    lost: BTreeMap<ScanId, IndexSet<ChunkIndex>>,
}

impl<'a> Losses<'a> {
    fn new(state: &'a State, room: &Room<'_>) -> Self {
        let trigger = room.plan.map(|plan| plan.scan);
        let scan = trigger.and_then(|id| state.scan(id));
        Self {
            state,
            strictness: room.strictness,
            trigger,
            trigger_waits: scan.is_some_and(|scan| scan.starving_since().is_some()),
            lost: BTreeMap::new(),
        }
    }

    /// Whether this page may be a victim too; if so, it counts as lost.
    fn admit(&mut self, id: PageId) -> bool {
        let layout = self.state.table(id.table).layout();
        let (group, chunks) = (layout.group_of(id.page), layout.chunks_of(id.page));
        let readers = self.state.scans_of(id.table).filter(|scan| scan.groups().contains(group));
        if readers.clone().any(|scan| self.spares(scan, chunks)) {
            return false;
        }
        for scan in readers {
            let counted = chunks.iter().filter(|&&chunk| scan.counts_on(chunk));
            counted.for_each(|&chunk| {
                self.lost.entry(scan.id()).or_default().insert(chunk);
            });
        }
        true
    }

    /// Whether a page of these chunks stays because of a scan that reads it.
    fn spares(&self, scan: &Scan, chunks: &[ChunkIndex]) -> bool {
        if self.strictness == Strictness::MayRobTrigger {
            return false;
        }
        if Some(scan.id()) == self.trigger {
            return chunks.iter().any(|&chunk| scan.needed().contains(chunk));
        }
        if self.strictness == Strictness::MayStarve {
            return false;
        }
        let lost = self.lost.get(&scan.id());
        let is_lost = |chunk| lost.is_some_and(|lost| lost.contains(chunk));
        // A worker that is only held back goes on with that chunk: without it, it would take another scan's in turn.
        let mut next = scan.deliverable().filter(|&chunk| !is_lost(chunk));
        let only = next.next().filter(|_| next.next().is_none());
        if scan.waiting_since().is_some() && only.is_some_and(|chunk| chunks.contains(&chunk)) {
            return true;
        }
        let losing =
            chunks.iter().filter(|&&chunk| scan.counts_on(chunk) && !is_lost(chunk)).count();
        let stock = scan.stock().saturating_sub(lost.map_or(0, IndexSet::len));
        let losses = if self.trigger_waits { 0 } else { losing };
        losing > 0 && stock < scan.chunks_ahead() + losses
    }
}

/// The column groups that any of these scans reads.
fn union_of_groups<'a>(scans: impl Iterator<Item = &'a Scan>) -> IndexSet<GroupIndex> {
    let mut groups = IndexSet::new();
    scans.for_each(|scan| groups.union_with(scan.groups()));
    groups
}

/// The item with the largest score, the first of equal ones (slip 4 in the papers: whatever its sign).
fn best<T>(items: impl Iterator<Item = T>, score: impl Fn(&T) -> f64) -> Option<T> {
    let mut best: Option<(f64, T)> = None;
    for item in items {
        let item_score = score(&item);
        if best.as_ref().is_none_or(|(best_score, _)| item_score > *best_score) {
            best = Some((item_score, item));
        }
    }
    best.map(|(_, item)| item)
}

impl Policy for Relevance {
    fn name(&self) -> &'static str {
        "relevance"
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let wanting = state.scans().filter(|scan| {
            scan.wants_load() && attempt.admits(scan.id()) && scan.loadable().next().is_some()
        });
        let scan = best(wanting, |scan| Self::scan_score(state, scan))?;
        let helped = Self::helped(state, scan);
        let score = |&chunk: &ChunkIndex| self.load_score(state, scan.table(), &helped, chunk);
        let chunk = match scan.order() {
            Order::Any => best(scan.loadable(), score),
            Order::InOrder => scan.loadable().next(),
        }?;
        let pages = Self::pages_to_load(state, scan, &helped, chunk);
        Some(LoadPlan { scan: scan.id(), chunk, pages })
    }

    fn choose_victims(&self, state: &State, room: &Room<'_>) -> Vec<PageId> {
        let mut losses = Losses::new(state, room);
        let wanted = std::iter::once_with(|| self.pages_to_evict(state, room)).flatten();
        let wanted = wanted.filter(|&id| losses.admit(id));
        room.fill(state, state.unwanted_pages().chain(wanted))
    }

    fn schedules_workers(&self) -> bool {
        true
    }

    /// First whoever can use most of what is decoded now, so that scans meet at a chunk while it is decoded and in the
    /// processors' caches; then whoever has least left.
    fn prefer_worker(&self, state: &State, ready: &[ScanId]) -> usize {
        let rank = |id: ScanId| {
            let scan = state.scan(id).expect("a waiting scan runs");
            (Self::most_decoded(state, scan), std::cmp::Reverse(scan.needed().len()))
        };
        let positions = (0..ready.len()).rev();
        positions.max_by_key(|&position| rank(ready[position])).unwrap_or(0)
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        let scan = state.scan(scan)?;
        // What is decoded now is decoded once for all who take it now.
        let decoded = |chunk| state.decoded_groups(scan.table(), chunk, scan.groups());
        let most_decoded = Self::most_decoded(state, scan);
        let chunks = scan.deliverable().filter(|&chunk| decoded(chunk) == most_decoded);
        best(chunks, |&chunk| self.use_score(state, scan, chunk))
    }
}
