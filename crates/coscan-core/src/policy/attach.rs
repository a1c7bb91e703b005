//! `attach`: a new scan starts where the running scan with the largest remaining overlap is, continues to the end,
//! wraps around and finishes where it began. Least recently used pages are evicted [CS07 §3, §6.2].

use crate::ids::{ChunkIndex, PageId, ScanId};
use crate::policy::sequence::Sequence;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Policy};
use crate::scan::{Order, Scan};
use crate::state::State;

/// The policy `attach`.
#[derive(Clone, Debug, Default)]
pub struct Attach {
    sequence: Sequence,
}

impl Attach {
    /// The bytes of the chunks and columns that two scans both need.
    fn overlap_bytes(state: &State, scan: &Scan, other: &Scan) -> u64 {
        let groups = scan.groups().iter().filter(|&group| other.groups().contains(group)).collect();
        let chunks = scan.needed().iter().filter(|&chunk| other.needed().contains(chunk));
        let pages = chunks.flat_map(|chunk| state.pages(scan.table(), chunk, &groups));
        pages.map(|id| state.bytes_of(id)).sum()
    }
}

impl Policy for Attach {
    fn name(&self) -> &'static str {
        "attach"
    }

    fn on_scan_started(&mut self, state: &State, scan: ScanId) {
        let Some(new) = state.scan(scan).filter(|scan| scan.order() == Order::Any) else { return };
        let running = state
            .scans_of(new.table())
            .filter(|other| other.id() != scan && other.worker_count() > 0);
        let overlaps = running.map(|other| (Self::overlap_bytes(state, new, other), other));
        // Ties go to the oldest scan: others have attached to it before.
        let best = overlaps.max_by_key(|(bytes, other)| (*bytes, std::cmp::Reverse(other.id())));
        if let Some((1.., other)) = best
            && let Some(position) = self.sequence.remaining(other).next()
        {
            self.sequence.start_at(scan, position);
        }
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
