//! `relevance-2007`: the policy as published. It reads for the scan with the highest `queryRelevance` the chunk that
//! helps most starved scans per byte, evicts what almost starved scans need least, and hands out what few other scans
//! need, to every scan that can proceed [CS07 §4, §6.2, Figures 3 and 11].

use crate::classes::Class;
use crate::ids::{ChunkIndex, PageId, ScanId, ScanPosition, TableId};
use crate::policy::eviction::{choose_victims, victim_bytes_max};
use crate::policy::next_use::NextUseIndex;
use crate::policy::ranking::{Score, best_first, first_second};
use crate::policy::reuse::UnneededPages;
use crate::policy::scoring::{
    EvictionOrder, LoadRelevance, Scores, helped_by, load_candidates, overlapping, plan,
    takes_any_chunk, waited_loads,
};
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy};
use crate::scan::Scan;
use crate::set::IndexSet;
use crate::state::State;
use crate::table::Table;

/// The policy `relevance-2007`.
#[derive(Clone, Debug, Default)]
pub struct Relevance2007 {
    /// The scores for all tables; by default those that fit a table's layout.
    pub scores: Option<Scores>,
    /// The classes by `keepRelevance`.
    eviction_order: EvictionOrder,
}

/// The score of a scan: fewest chunks left first, and waiting gains a chunk for each load (`queryRelevance`).
fn scan_score(state: &State, scan: &Scan) -> Score {
    let waited_ns = scan.starving_since().map_or(0, |since| state.now().since(since));
    Score(waited_loads(state, waited_ns) - scan.chunks_left() as f64)
}

/// The classes of a table, smallest `keepRelevance` first.
fn least_kept(
    state: &State,
    scores: Option<Scores>,
    id: TableId,
) -> impl Iterator<Item = (Score, &Class)> {
    let table = state.table(id);
    let scores = scores.unwrap_or(Scores::of(table));
    let almost_starved = table.almost_starved();
    let others = table.scans().len() - almost_starved.len();
    let bound = move |scans: usize| match scores {
        Scores::Row => Score(-first_second(scans.saturating_sub(others), scans).0),
        Scores::Column => Score(0.0),
    };
    let score = move |class: &Class| {
        let key = class.key();
        let keeping = key.scans.intersection(almost_starved);
        let kept = match scores {
            Scores::Row => first_second(keeping.len(), key.scans.len()),
            Scores::Column => {
                let groups = table.classes().groups_of(&keeping);
                let cached_bytes = state.cached_bytes(id, class.first(), &groups);
                Score(keeping.len() as f64 / cached_bytes.max(1) as f64)
            }
        };
        Some(Score(-kept.0))
    };
    best_first(table.classes().in_pool(), bound, score)
}

impl Relevance2007 {
    /// The policy with these scores for all tables.
    #[must_use]
    pub fn with_scores(scores: Scores) -> Self {
        Self { scores: Some(scores), ..Self::default() }
    }

    fn scores_for(&self, table: &Table) -> Scores {
        self.scores.unwrap_or(Scores::of(table))
    }

    /// The chunk with the largest `loadRelevance` for a scan.
    fn choose_chunk(
        &self,
        state: &State,
        scan: &Scan,
        helped: &IndexSet<ScanPosition>,
    ) -> Option<ChunkIndex> {
        let scores = self.scores_for(state.table(scan.table()));
        let benefit: fn(usize, usize) -> f64 = match scores {
            Scores::Row => |helped, served| first_second(helped, served).0,
            Scores::Column => |helped, _| helped as f64,
        };
        let relevance = LoadRelevance { scores, helped, benefit };
        relevance.choose_chunk(state, scan, |_, class| class.first())
    }

    pub(super) fn table_changed(&mut self, table: TableId) {
        self.eviction_order.table_changed(table);
    }

    /// Chunks with the smallest `keepRelevance`, merged with the pages of scans in order if their next uses are known.
    pub(super) fn victims<'n>(
        &mut self,
        state: &State,
        request: &EvictionRequest<'_>,
        in_order: Option<&'n mut NextUseIndex>,
        unneeded: UnneededPages<'n>,
    ) -> Vec<PageId> {
        let scores = self.scores;
        let classes = self.eviction_order.classes(state, |id| least_kept(state, scores, id));
        choose_victims(state, request, classes, in_order, unneeded)
    }

    /// The bytes of victims at most, see [`victim_bytes_max`].
    pub(super) fn bytes_max<'n>(
        &mut self,
        state: &State,
        (waits, enough): (bool, u64),
        in_order: Option<&'n mut NextUseIndex>,
        unneeded: UnneededPages<'n>,
    ) -> u64 {
        let scores = self.scores;
        let classes = self.eviction_order.classes(state, |id| least_kept(state, scores, id));
        victim_bytes_max(state, (waits, enough), classes, in_order, unneeded)
    }

    /// The chunk with the largest `useRelevance` for a scan.
    pub(super) fn delivery(&self, state: &State, scan: &Scan) -> Option<ChunkIndex> {
        if !takes_any_chunk(scan) {
            return scan.deliverable().next();
        }
        let table = state.table(scan.table());
        let scores = self.scores_for(table);
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
                    let users = key.scans.intersection(&overlapping);
                    let groups = table.classes().groups_of(&users);
                    let cached_bytes = state.cached_bytes(scan.table(), class.first(), &groups);
                    Score(cached_bytes as f64 / users.len().max(1) as f64)
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
        let scan = load_candidates(state, attempt)
            .max_by_key(|scan| (scan_score(state, scan), std::cmp::Reverse(scan.id())))?;
        let helped = helped_by(state, scan);
        let chunk = self.choose_chunk(state, scan, &helped)?;
        Some(plan(state, scan, &helped, chunk))
    }

    fn on_table_changed(&mut self, table: TableId) {
        self.table_changed(table);
    }

    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId> {
        self.victims(state, request, None, UnneededPages::default())
    }

    fn victim_bytes_max(&mut self, state: &State, waits: bool, enough: u64) -> u64 {
        self.bytes_max(state, (waits, enough), None, UnneededPages::default())
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        self.delivery(state, state.scan(scan)?)
    }
}
