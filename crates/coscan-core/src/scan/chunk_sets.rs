//! What a scan needs, indexed by where the pages of it are.

use super::Scan;
use crate::classes::ClassKey;
use crate::decoded::DecodedSlices;
use crate::ids::ChunkIndex;
use crate::pages::Place;

impl Scan {
    /// Files a needed chunk anew after its class changed.
    pub(crate) fn reindex(&mut self, chunk: ChunkIndex, key: &ClassKey) {
        self.available.set(chunk, key.has(&self.groups));
        self.cold.set(chunk, !key.covers(&self.groups));
    }

    /// Files a needed chunk anew, of which it reads pages at these places.
    pub(crate) fn reindex_by_places(
        &mut self,
        chunk: ChunkIndex,
        places: impl Iterator<Item = Place>,
    ) {
        let (mut cached, mut cold) = (true, false);
        for place in places {
            cached &= place == Place::Cached;
            cold |= place == Place::Cold;
        }
        self.available.set(chunk, cached);
        self.cold.set(chunk, cold);
    }

    /// Takes a chunk out of everything it is indexed in.
    pub(crate) fn forget(&mut self, chunk: ChunkIndex) {
        self.needed.remove(chunk);
        self.available.remove(chunk);
        self.cold.remove(chunk);
        self.decoded.set(chunk, 0);
    }

    /// Files a chunk anew by what of it is decoded, after that has changed, or whether it is there.
    pub(crate) fn reindex_decoded(&mut self, chunk: ChunkIndex, decoded: &DecodedSlices) {
        let is_there = self.is_available(chunk);
        self.decoded.set(chunk, if is_there { decoded.groups(chunk, &self.groups) } else { 0 });
    }
}
