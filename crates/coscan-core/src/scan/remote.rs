//! The relations of a scan to other servers: it reads for one, records what one needs, or takes what one has.

use super::{Order, Scan};
use crate::ids::ChunkIndex;
use crate::set::HierarchicalBitSet;

impl Scan {
    /// Whether it only records what another server needs. It has no workers, so nothing is read for it.
    #[must_use]
    pub fn is_interest(&self) -> bool {
        self.workers.is_empty()
    }

    /// Whether it reads for a query at another server.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Whether its chunks are decoded here.
    #[must_use]
    pub fn decodes(&self) -> bool {
        !self.is_interest() && !self.is_remote()
    }

    /// The number of chunks that its query still has to be handed, here and elsewhere.
    #[must_use]
    pub fn chunks_left(&self) -> usize {
        let elsewhere = self.remote.map_or(0, |query| query.chunks_left);
        self.needed.len().saturating_add(usize::try_from(elsewhere).unwrap_or(usize::MAX))
    }

    /// Needed chunks whose missing pages are all in the pool of another server; none if it is sparse.
    #[must_use]
    pub fn nearby(&self) -> &HierarchicalBitSet<ChunkIndex> {
        &self.nearby
    }

    /// Whether it is starved, though chunks may be arriving, and another server has a chunk that it needs in its pool.
    /// That chunk comes sooner than those that are read from a device.
    #[must_use]
    pub fn needs_nearby_load(&self) -> bool {
        let may_choose = self.order == Order::Any && !self.is_remote();
        may_choose
            && !self.nearby.is_empty()
            && self.ready_chunks() + self.nearby_loads < self.chunks_ahead()
    }
}
