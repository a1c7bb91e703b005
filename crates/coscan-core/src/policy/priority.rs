//! The priority classes of scans, by their size relative to the other running scans.

use crate::scan::PriorityBounds;
use crate::state::State;

/// A scan is short if the largest running one reads at least this many times as many bytes, so that it delays long ones
/// little. Bytes are compared, since chunks of different tables and columns differ in size as much as scans do in
/// chunks.
const SHORT_FACTOR: u64 = 16;

/// A short scan of at most this many chunks is tiny. If more scans were tiny, they would wait for each other at the
/// device.
const TINY_CHUNKS_MAX: u64 = 2;

/// The bounds below which the running scans are short and tiny. Lookups have size 0, so they are tiny.
pub(super) fn priority_bounds(state: &State) -> PriorityBounds {
    let short_below = state.largest_size() / SHORT_FACTOR + 1;
    PriorityBounds { short_below, tiny_chunks_max: TINY_CHUNKS_MAX }
}
