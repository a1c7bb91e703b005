//! `relevance-2004`: the first version. Read the chunk that most starved scans lack, for the one that waits longest;
//! evict what fewest scans need; hand out whatever is there [CS04 §3.1, §4.1].
//!
//! Starved is a scan without any chunk to go on with, not one with a single one left as in [CS07 §4].

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::classes::Class;
use crate::ids::{ChunkIndex, PageId, ScanId, SlotIndex, TableId};
use crate::policy::merge::Heads;
use crate::policy::ranking::{Score, best_first, first_second};
use crate::policy::relevance_2007::{load_candidates, plan};
use crate::policy::reuse::UnwantedPages;
use crate::policy::victims::choose_victims;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy};
use crate::scan::{Order, Scan};
use crate::set::IndexSet;
use crate::state::State;

/// The policy `relevance-2004`.
#[derive(Clone, Debug, Default)]
pub struct Relevance2004 {
    /// For each table, the smallest `keepRelevance` of its classes.
    least_needed: Heads<Score>,
    /// Tables to be looked at anew before the next choice of victims.
    changed: BTreeSet<TableId>,
}

/// Has no chunk at hand (`availableChunks` is empty).
fn is_starved(scan: &Scan) -> bool {
    !scan.needed().is_empty() && !scan.is_deliverable()
}

/// The chunk that most starved scans lack (`fetchRelevance`), then the one that most scans need.
fn choose_chunk(state: &State, scan: &Scan, starved: &IndexSet<SlotIndex>) -> Option<ChunkIndex> {
    if scan.order() == Order::InOrder || scan.is_sparse() {
        return scan.loadable().next();
    }
    let bound = |scans: usize| first_second(starved.len().min(scans), scans);
    let score = |class: &Class| {
        let key = class.key();
        let lacks = key.scans.contains(scan.slot()) && !key.covers(scan.groups());
        lacks.then(|| first_second(key.scans.intersection_len(starved), key.scans.len()))
    };
    let classes = state.table(scan.table()).classes();
    let best = best_first(classes.to_read(), bound, score).next();
    best.map(|(_, class)| class.first()).or_else(|| scan.loadable().next())
}

/// The classes of a table, smallest `keepRelevance` first; what a scan has as its only chunk is spared besides.
fn least_needed(state: &State, table: TableId) -> impl Iterator<Item = (Score, &Class)> {
    let needed_by = |scans: usize| Score(-(scans as f64));
    let score = move |class: &Class| Some(needed_by(class.key().scans.len()));
    best_first(state.table(table).classes().in_pool(), needed_by, score)
}

impl Policy for Relevance2004 {
    fn name(&self) -> &'static str {
        "relevance-2004"
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let load_candidates = load_candidates(state, attempt);
        // Whoever waits, for longest; if nobody does, whoever has least at hand.
        let scan = load_candidates.min_by_key(|scan| {
            let since = scan.starving_since();
            (since.is_none(), since, scan.ready_chunks(), Reverse(scan.needed().len()), scan.id())
        })?;
        let starved =
            state.slots_where(scan.table(), |other| other.id() == scan.id() || is_starved(other));
        let chunk = choose_chunk(state, scan, &starved)?;
        Some(plan(state, scan, &starved, chunk))
    }

    fn on_table_changed(&mut self, table: TableId) {
        self.changed.insert(table);
    }

    fn choose_victims(&mut self, state: &State, room: &EvictionRequest<'_>) -> Vec<PageId> {
        for id in std::mem::take(&mut self.changed) {
            let least = state.knows(id).then(|| least_needed(state, id).next()).flatten();
            self.least_needed.set(id, least.map(|(score, _)| score));
        }
        let classes = self.least_needed.merge(|id| least_needed(state, id));
        choose_victims(state, room, classes, None, UnwantedPages::default())
    }

    /// The chunk that came first.
    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        state.scan(scan)?.deliverable().next()
    }
}
