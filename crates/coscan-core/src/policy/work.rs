//! The work that scans have left, and their turns at the processors.

use crate::ids::Time;
use crate::scan::Scan;
use crate::state::State;

/// The least number of chunks that a scan counts as having left, however long it has waited: less than one, so that
/// waiting counts for a scan of one chunk, and more than none, so that the time for a chunk still decides.
const CHUNKS_LEFT_MIN: f64 = 0.5;

/// The weight of ready chunks: a scan whose chunks are all ready ranks as if it had a hundredth of its work left. They
/// count in percent of the scan, so that the size of chunks makes no difference.
const READY_PERCENT: f64 = 100.0;

/// The current speed of processing.
pub(super) struct Work {
    /// Average nanoseconds for a chunk: the estimate for a scan that has processed none yet.
    chunk_ns: f64,
    /// Nanoseconds between two deliveries: the time until a worker is done with a chunk, or that of a load if it is
    /// longer. Loads alone say nothing where everything is in the pool.
    turn_ns: f64,
}

impl Work {
    pub(super) fn of(state: &State) -> Self {
        let chunk_ns = state.average_chunk_ns().unwrap_or(1.0);
        let active = state.active_workers().max(1) as f64;
        let load_ns = state.load_ns().unwrap_or(0) as f64;
        Self { chunk_ns, turn_ns: load_ns.max(chunk_ns / active) }
    }

    /// The turns that would have been a scan's since then. One of weight 2 has twice as many.
    pub(super) fn turns(&self, state: &State, scan: &Scan, since: Option<Time>) -> f64 {
        let waited_ns = since.map_or(0, |since| state.now().since(since));
        let weight = f64::from(scan.weight());
        weight * waited_ns as f64 / self.turn_ns / state.competing_scans().max(1) as f64
    }

    /// Nanoseconds of work that a scan has left, divided by one plus the percentage of it that is ready: data in the pool
    /// should be used before it is evicted. Waiting takes off a chunk for each turn that would have been the scan's.
    pub(super) fn left(&self, state: &State, scan: &Scan) -> f64 {
        let needed = scan.needed().len() as f64;
        let waited_turns = self.turns(state, scan, scan.waiting_since());
        let left = (needed - waited_turns).max(CHUNKS_LEFT_MIN);
        let chunk_ns = scan.chunk_ns().map_or(self.chunk_ns, |ns| ns as f64);
        let ready_part = (scan.ready_chunks() as f64 / (needed + 1.0)).min(1.0);
        left * chunk_ns / f64::from(scan.weight()) / (1.0 + READY_PERCENT * ready_part)
    }
}
