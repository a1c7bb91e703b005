//! Which scans are short beside the others that run.

use crate::scan::PriorityBounds;
use crate::state::State;

/// A scan is short that is this many times shorter than the longest that runs: it is handed chunks
/// beyond the limit of workers, up to twice as many.
const SHORT: u64 = 16;

/// A short scan of so few chunks passes others at the device, too. Were more scans to do so, they would wait for each
/// other there.
const TINY_CHUNKS: u64 = 2;

/// Below which sizes the running scans are short and tiny. One that reads selected pages only is tiny in any case: it has no size.
pub(super) fn priority_bounds(state: &State) -> PriorityBounds {
    let short_below = state.largest_size() / SHORT + 1;
    PriorityBounds { short_below, tiny_below: short_below.min(TINY_CHUNKS + 1) }
}
