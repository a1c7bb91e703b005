//! `relevance-2007`: the paper's. For the scan that needs it most, read the chunk that helps most scans for the fewest
//! bytes; evict what almost starved scans miss least; hand out what few others want, to everybody who can go on
//! [CS07 §4, §6.2, Figures 3 and 11].

use std::collections::BTreeSet;

use crate::classes::Class;
use crate::ids::{ChunkIndex, PageId, ScanId, SlotIndex, TableId};
use crate::policy::merge::Heads;
use crate::policy::next_use::NextUseIndex;
use crate::policy::ranking::{Score, best_first, first_second};
use crate::policy::reuse::UnwantedPages;
use crate::policy::victims::choose_victims;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// Which set of scores is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scores {
    /// Chunks are whole: count scans [CS07 Figure 3].
    Row,
    /// Chunks have columns of different sizes: weigh scans against bytes [CS07 Figure 11].
    Column,
}

/// The policy `relevance-2007`.
#[derive(Clone, Debug, Default)]
pub struct Relevance2007 {
    /// The scores for all tables; by default those that fit a table's layout.
    pub scores: Option<Scores>,
    /// For each table, the smallest `keepRelevance` of its classes.
    least_kept: Heads<Score>,
    /// Tables to be looked at anew before the next choice of victims.
    changed: BTreeSet<TableId>,
}

/// Short scans first, but those that wait gain a chunk for every average load they have waited, shared by all running
/// scans (`queryRelevance`; slip 5 in `docs/papers.md`: the unit).
fn scan_score(state: &State, scan: &Scan) -> Score {
    let waited_ns = scan.starving_since().map_or(0, |since| state.now().since(since));
    let waited_loads = state.load_ns().map_or(0.0, |load_ns| waited_ns as f64 / load_ns as f64);
    Score(waited_loads / state.scan_count() as f64 - scan.needed().len() as f64)
}

/// Scans for which something can be read, and too little is there or on its way.
pub(super) fn load_candidates<'a>(
    state: &'a State,
    attempt: &Attempt<'_>,
) -> impl Iterator<Item = &'a Scan> {
    let open = state.load_candidates().filter(|(kind, _)| !attempt.slots.is_closed(kind.device));
    let scans = open
        .flat_map(|(_, load_candidates)| load_candidates.scans())
        .filter_map(|id| state.scan(id));
    scans.filter(|scan| attempt.admits(scan))
}

/// Starved scans that a load for `scan` may help, `scan` itself among them.
pub(super) fn helped_by(state: &State, scan: &Scan) -> IndexSet<SlotIndex> {
    let table = state.table(scan.table());
    let mut helped = table.readers_of(scan.groups()).intersection(table.starved());
    helped.insert(scan.slot());
    helped
}

/// Scans of the same table that share a column group with this one, itself among them.
pub(super) fn overlapping(state: &State, scan: &Scan) -> IndexSet<SlotIndex> {
    state.table(scan.table()).readers_of(scan.groups())
}

/// The pages to read of a chunk: what the scan needs, small ones first so that it can go on early, then what the other
/// scans that it helps need.
pub(super) fn plan(
    state: &State,
    scan: &Scan,
    helped: &IndexSet<SlotIndex>,
    chunk: ChunkIndex,
) -> LoadPlan {
    let table = state.table(scan.table());
    if scan.is_sparse() {
        return LoadPlan::of_missing(state, scan, chunk);
    }
    let here = table.classes().class_of(chunk).key().scans.intersection(helped);
    let groups = table.classes().groups_of(&here);
    let mut pages = state.pages(scan.table(), chunk, &groups);
    pages.retain(|&id| state.is_cold(id));
    let own = |id: &PageId| state.chunks_read(scan, *id).any(|read| read == chunk);
    let bytes: u64 = pages.iter().map(|&id| state.bytes_of(id)).sum();
    if bytes > state.pool_bytes() / 2 {
        pages.retain(own);
    }
    pages.sort_by_key(|id| (!own(id), state.bytes_of(*id), *id));
    LoadPlan { scan: scan.id(), chunk, pages }
}

/// The scores that fit a table's layout, if none are prescribed.
fn scores_for(scores: Option<Scores>, table: &Table) -> Scores {
    let one_group = table.group_count() == 1;
    scores.unwrap_or(if one_group { Scores::Row } else { Scores::Column })
}

/// The classes of a table, smallest `keepRelevance` first.
fn least_kept(
    state: &State,
    scores: Option<Scores>,
    id: TableId,
) -> impl Iterator<Item = (Score, &Class)> {
    let table = state.table(id);
    let scores = scores_for(scores, table);
    let almost_starved = table.almost_starved();
    let others = table.scans().len() - almost_starved.len();
    let bound = move |scans: usize| match scores {
        Scores::Row => Score(-first_second(scans.saturating_sub(others), scans).0),
        Scores::Column => Score(0.0),
    };
    let score = move |class: &Class| {
        let key = class.key();
        let here = key.scans.intersection(almost_starved);
        let kept = match scores {
            Scores::Row => first_second(here.len(), key.scans.len()),
            Scores::Column => {
                let groups = table.classes().groups_of(&here);
                let cached_bytes = state.cached_bytes(id, class.first(), &groups);
                Score(here.len() as f64 / cached_bytes.max(1) as f64)
            }
        };
        Some(Score(-kept.0))
    };
    best_first(table.classes().in_pool(), bound, score)
}

impl Relevance2007 {
    /// With these scores for all tables.
    #[must_use]
    pub fn with_scores(scores: Scores) -> Self {
        Self { scores: Some(scores), ..Self::default() }
    }

    /// The chunk with the largest `loadRelevance` for a scan.
    fn choose_chunk(
        &self,
        state: &State,
        scan: &Scan,
        helped: &IndexSet<SlotIndex>,
    ) -> Option<ChunkIndex> {
        if scan.order() == Order::InOrder || scan.is_sparse() {
            return scan.loadable().next();
        }
        let table = state.table(scan.table());
        let scores = scores_for(self.scores, table);
        let bound = |scans: usize| match scores {
            Scores::Row => first_second(helped.len().min(scans), scans),
            Scores::Column => Score(f64::INFINITY),
        };
        let score = |class: &Class| {
            let key = class.key();
            if !key.scans.contains(scan.slot()) || key.covers(scan.groups()) {
                return None;
            }
            Some(match scores {
                Scores::Row => first_second(key.scans.intersection_len(helped), key.scans.len()),
                Scores::Column => {
                    let here = key.scans.intersection(helped);
                    let groups = table.classes().groups_of(&here);
                    let cold_bytes = state.cold_bytes(scan.table(), class.first(), &groups);
                    Score(here.len() as f64 / cold_bytes.max(1) as f64)
                }
            })
        };
        let best = best_first(table.classes().to_read(), bound, score).next();
        best.map(|(_, class)| class.first()).or_else(|| scan.loadable().next())
    }

    /// A table is not what it was.
    pub(super) fn table_changed(&mut self, table: TableId) {
        self.changed.insert(table);
    }

    /// What goes: chunks with the smallest `keepRelevance`; of what scans in order come to, if their next uses are known,
    /// what is used last.
    pub(super) fn victims(
        &mut self,
        state: &State,
        room: &EvictionRequest<'_>,
        in_order: Option<&mut NextUseIndex>,
        unwanted: UnwantedPages<'_>,
    ) -> Vec<PageId> {
        let scores = self.scores;
        for id in std::mem::take(&mut self.changed) {
            let least = state.knows(id).then(|| least_kept(state, scores, id).next()).flatten();
            self.least_kept.set(id, least.map(|(score, _)| score));
        }
        let classes = self.least_kept.merge(|id| least_kept(state, scores, id));
        choose_victims(state, room, classes, in_order, unwanted)
    }

    /// The chunk with the largest `useRelevance` for a scan.
    pub(super) fn delivery(&self, state: &State, scan: &Scan) -> Option<ChunkIndex> {
        if scan.order() == Order::InOrder || scan.is_sparse() {
            return scan.deliverable().next();
        }
        let table = state.table(scan.table());
        let scores = scores_for(self.scores, table);
        let overlapping = match scores {
            Scores::Row => IndexSet::new(),
            Scores::Column => overlapping(state, scan),
        };
        let bound = |scans: usize| match scores {
            Scores::Row => Score(-(scans as f64)),
            Scores::Column => Score(f64::INFINITY),
        };
        let score = |class: &Class| {
            let key = class.key();
            if !key.scans.contains(scan.slot()) || !key.has(scan.groups()) {
                return None;
            }
            Some(match scores {
                Scores::Row => Score(-(key.scans.len() as f64)),
                Scores::Column => {
                    let here = key.scans.intersection(&overlapping);
                    let groups = table.classes().groups_of(&here);
                    let cached_bytes = state.cached_bytes(scan.table(), class.first(), &groups);
                    Score(cached_bytes as f64 / here.len().max(1) as f64)
                }
            })
        };
        let best = best_first(table.classes().in_pool(), bound, score).next();
        best.map(|(_, class)| class.first()).or_else(|| scan.deliverable().next())
    }
}

impl Policy for Relevance2007 {
    fn name(&self) -> &'static str {
        "relevance-2007"
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let load_candidates = load_candidates(state, attempt);
        let scan = load_candidates
            .max_by_key(|scan| (scan_score(state, scan), std::cmp::Reverse(scan.id())))?;
        let helped = helped_by(state, scan);
        let chunk = self.choose_chunk(state, scan, &helped)?;
        Some(plan(state, scan, &helped, chunk))
    }

    fn on_table_changed(&mut self, table: TableId) {
        self.table_changed(table);
    }

    fn choose_victims(&mut self, state: &State, room: &EvictionRequest<'_>) -> Vec<PageId> {
        self.victims(state, room, None, UnwantedPages::default())
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        self.delivery(state, state.scan(scan)?)
    }
}
