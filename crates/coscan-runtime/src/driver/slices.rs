//! Decoded columns: core is told about them, and they are dropped when no scan needs them.

use super::handle::Driver;
use crate::decode_cache::SliceKey;

impl Driver {
    /// The number of scans that still need each of these slices.
    pub(crate) fn interested(&self, slices: impl IntoIterator<Item = SliceKey>) -> Vec<usize> {
        let inner = self.lock();
        slices.into_iter().map(|key| inner.interested(key)).collect()
    }

    /// Drops all decoded slices that no worker expects and no scan needs.
    pub(super) fn drop_unneeded_slices(&self) {
        let ready = self.decoded.ready().into_iter();
        let unexpected = ready.filter(|(_, expected)| *expected == 0).map(|(key, _)| key);
        self.drop_unneeded(&unexpected.collect::<Vec<_>>());
    }

    /// Drops those of some slices that no worker expects and no scan needs.
    pub(super) fn drop_unneeded(&self, slices: &[SliceKey]) {
        let interested = self.interested(slices.iter().copied());
        let unneeded = slices.iter().zip(interested).filter(|(_, interested)| *interested == 0);
        unneeded.for_each(|(&key, _)| {
            self.drop_slice(key);
        });
    }

    /// Drops a decoded slice unless workers expect it; true if it was there.
    pub(super) fn drop_slice(&self, key: SliceKey) -> bool {
        let is_dropped = self.decoded.remove_unexpected(key);
        if is_dropped {
            let mut inner = self.lock();
            for (table, chunk, group) in inner.slices(key) {
                inner.core.slice_dropped(table, chunk, group);
            }
        }
        is_dropped
    }

    /// Tells core that a slice is decoded now.
    pub(crate) fn note_decoded(&self, key: SliceKey) {
        let mut inner = self.lock();
        for (table, chunk, group) in inner.slices(key) {
            inner.core.slice_decoded(table, chunk, group);
        }
    }
}
