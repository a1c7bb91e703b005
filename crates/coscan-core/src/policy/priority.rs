//! Which scans are short relative to the others that run.

use crate::scan::PriorityBounds;
use crate::state::State;

/// A scan is short if the longest running one is so many times as long: then it delays the long ones little.
const SHORT_FACTOR: u64 = 16;

/// A short scan of at most so many chunks is tiny. If more scans were tiny, they would wait for each other at the device.
const TINY_CHUNKS_MAX: u64 = 2;

/// The sizes below which the running scans are short and tiny. Scans of selected pages have size 0, so they are tiny.
pub(super) fn priority_bounds(state: &State) -> PriorityBounds {
    let short_below = state.largest_size() / SHORT_FACTOR + 1;
    PriorityBounds { short_below, tiny_below: short_below.min(TINY_CHUNKS_MAX + 1) }
}
