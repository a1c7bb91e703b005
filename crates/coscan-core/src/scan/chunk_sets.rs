//! The needed chunks of a scan, indexed by the residency of their pages.

use super::Scan;
use crate::classes::ClassKey;
use crate::decoded::DecodedSlices;
use crate::ids::ChunkIndex;
use crate::pages::Residency;

impl Scan {
    /// Indexes a needed chunk anew after its class changed.
    pub(crate) fn reindex(&mut self, chunk: ChunkIndex, key: &ClassKey) {
        self.available.set(chunk, key.has(&self.groups));
        self.cold.set(chunk, !key.covers(&self.groups));
        self.nearby.set(chunk, key.is_nearby(&self.groups));
    }

    /// Indexes a needed chunk anew by the residency of the pages that the scan reads.
    pub(crate) fn reindex_by_residency(
        &mut self,
        chunk: ChunkIndex,
        residencies: impl Iterator<Item = Residency>,
    ) {
        let (mut cached, mut cold) = (true, false);
        for residency in residencies {
            cached &= residency == Residency::Cached;
            cold |= residency == Residency::Cold;
        }
        self.available.set(chunk, cached);
        self.cold.set(chunk, cold);
    }

    /// Removes a chunk from all indexes.
    pub(crate) fn forget(&mut self, chunk: ChunkIndex) {
        self.needed.remove(chunk);
        self.available.remove(chunk);
        self.cold.remove(chunk);
        self.nearby.remove(chunk);
        self.decoded.set(chunk, 0);
    }

    /// Indexes a chunk anew by its decoded column groups, after those or its availability changed.
    pub(crate) fn reindex_decoded(&mut self, chunk: ChunkIndex, decoded: &DecodedSlices) {
        let is_available = self.is_available(chunk);
        self.decoded.set(chunk, if is_available { decoded.groups(chunk, &self.groups) } else { 0 });
    }
}
