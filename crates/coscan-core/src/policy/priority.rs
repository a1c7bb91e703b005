//! Which scans are short beside the others that run.

use crate::scan::PriorityBounds;
use crate::state::State;

/// A scan is short that reads this many times fewer bytes than the one of the running scans that reads most: it is handed
/// chunks beyond the limit of workers, up to twice as many. Bytes, since chunks of different tables and columns differ in
/// size as much as scans do in chunks.
const SHORT: u64 = 16;

/// A short scan of so few chunks passes others at the device, too. Were more scans to do so, they would wait for each
/// other there.
const TINY_CHUNKS: u64 = 2;

/// By what the running scans are short and tiny. One that reads selected pages only is tiny in any case: it has no size.
pub(super) fn priority_bounds(state: &State) -> PriorityBounds {
    PriorityBounds { short_below: state.largest_size() / SHORT + 1, tiny_chunks_max: TINY_CHUNKS }
}
