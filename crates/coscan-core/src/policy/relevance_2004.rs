//! `relevance-2004`: the first version. It reads, for the scan that has waited longest, the chunk that most starved scans
//! lack, evicts what fewest scans need, and hands out chunks in any order [CS04 §3.1, §4.1].
//!
//! A scan is starved if no chunk is ready for it; in [CS07 §4] a scan with one ready chunk is starved, too.

use std::cmp::Reverse;

use crate::classes::Class;
use crate::ids::{ChunkIndex, PageId, ScanId, TableId};
use crate::policy::eviction::choose_victims;
use crate::policy::ranking::{Score, best_first, first_second};
use crate::policy::reuse::UnneededPages;
use crate::policy::scoring::{EvictionOrder, LoadRelevance, Scores, load_candidates, plan};
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy};
use crate::scan::Scan;
use crate::state::State;

/// The policy `relevance-2004`.
#[derive(Clone, Debug, Default)]
pub struct Relevance2004 {
    /// The classes by `keepRelevance`.
    eviction_order: EvictionOrder,
}

/// Whether a scan has no chunk ready (`availableChunks` is empty).
fn is_starved(scan: &Scan) -> bool {
    !scan.needed().is_empty() && !scan.is_deliverable() && !scan.is_interest()
}

/// The classes of a table, smallest `keepRelevance` first. The only ready chunk of a scan is also spared.
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
        // The scan that has waited longest; if none waits, the one with fewest ready chunks.
        let scan = load_candidates(state, attempt).min_by_key(|scan| {
            let since = scan.starving_since();
            (since.is_none(), since, scan.ready_chunks(), Reverse(scan.needed().len()), scan.id())
        })?;
        let starved =
            state.slots_where(scan.table(), |other| other.id() == scan.id() || is_starved(other));
        // The chunk that most starved scans lack (`fetchRelevance`), then the one that most scans need.
        let benefit = |lacking, needing| first_second(lacking, needing).0;
        let relevance = LoadRelevance { scores: Scores::Row, helped: &starved, benefit };
        let chunk = relevance.choose_chunk(state, scan, |_, class| class.first())?;
        Some(plan(state, scan, &starved, chunk))
    }

    fn on_table_changed(&mut self, table: TableId) {
        self.eviction_order.table_changed(table);
    }

    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId> {
        let classes = self.eviction_order.classes(state, |table| least_needed(state, table));
        choose_victims(state, request, classes, None, UnneededPages::default())
    }

    /// Any ready chunk.
    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        state.scan(scan)?.deliverable().next()
    }
}
