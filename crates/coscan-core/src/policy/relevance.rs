//! `relevance`: the paper's scores, with processors scheduled too.

use crate::ids::{ChunkIndex, PageId, ScanId};
use crate::policy::relevance_2007::Relevance2007;
use crate::policy::{Attempt, LoadPlan, Policy, Room};
use crate::scan::{Order, Scan};
use crate::state::State;

/// The policy `relevance`.
#[derive(Clone, Debug, Default)]
pub struct Relevance {
    paper: Relevance2007,
}

impl Relevance {
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
}

impl Policy for Relevance {
    fn name(&self) -> &'static str {
        "relevance"
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        self.paper.choose_load(state, attempt)
    }

    fn choose_victims(&self, state: &State, room: &Room<'_>) -> Vec<PageId> {
        self.paper.choose_victims(state, room)
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
        if most_decoded == 0 {
            return self.paper.delivery(state, scan);
        }
        state.decoded_chunks(scan.table()).find(|&chunk| {
            scan.is_available(chunk)
                && decoded(chunk) == most_decoded
                && (scan.order() == Order::Any || scan.needed().first() == Some(chunk))
        })
    }
}
