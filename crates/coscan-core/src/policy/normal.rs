//! `normal`: what engines do today. Each scan runs from the first row to the last and reads one chunk ahead. Least
//! recently used pages are evicted [CS07 §3]. Scans that need the same page at the same time still cause one read.

use crate::ids::{ChunkIndex, PageId, ScanId};
use crate::policy::sequence::Sequence;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy};
use crate::state::State;

/// The policy `normal`.
#[derive(Clone, Debug, Default)]
pub struct Normal {
    sequence: Sequence,
}

impl Policy for Normal {
    fn name(&self) -> &'static str {
        "normal"
    }

    fn on_scan_ended(&mut self, scan: ScanId) {
        self.sequence.forget(scan);
    }

    fn on_load_started(&mut self, _state: &State, plan: &LoadPlan) {
        self.sequence.on_load_started(plan);
    }

    fn choose_load(&mut self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        self.sequence.choose_load(state, attempt)
    }

    fn choose_victims(&mut self, state: &State, request: &EvictionRequest<'_>) -> Vec<PageId> {
        self.sequence.choose_victims(state, request)
    }

    fn choose_delivery(&mut self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        self.sequence.choose_delivery(state, scan)
    }
}
