//! Decoded columns go when nobody will take them.

use super::Driver;
use crate::decode_cache::SliceKey;
use crate::memory::Missing;

impl Driver {
    /// How many scans still need each of these slices.
    pub(crate) fn interested(&self, slices: impl IntoIterator<Item = SliceKey>) -> Vec<usize> {
        let inner = self.lock();
        slices.into_iter().map(|key| inner.interested(key)).collect()
    }

    /// A worker has taken a slice that it was to take, or will not. Who is the last to want it drops it.
    pub(crate) fn slice_taken(&self, key: SliceKey) {
        if self.decoded.taken(key) {
            self.drop_unwanted(&[key]);
        }
    }

    /// Drops decoded slices that nobody expects and no scan needs.
    pub(crate) fn drop_unwanted_slices(&self) {
        self.drop_unwanted(&self.unexpected_slices());
    }

    fn drop_unwanted(&self, slices: &[SliceKey]) {
        let wanted = self.interested(slices.iter().copied());
        let unwanted = slices.iter().zip(wanted).filter(|(_, wanted)| *wanted == 0);
        unwanted.for_each(|(&key, _)| {
            self.drop_slice(key);
        });
    }

    /// Drops decoded columns that nobody waits for until so much is free: those that fewest scans want, and no more than
    /// `wanted_max`, first. If all of them are too few, none goes, and the result is false.
    pub(crate) fn make_room(&self, missing: Missing, wanted_max: usize) -> bool {
        let kept = self.decoded.kept();
        let enough = |bytes: u64| bytes >= missing.bytes;
        if !enough(kept.iter().map(|kept| kept.bytes).sum()) {
            return false;
        }
        let wanted = self.interested(kept.iter().map(|kept| kept.key));
        let mut least: Vec<_> =
            kept.iter().zip(wanted).filter(|(_, wanted)| *wanted <= wanted_max).collect();
        if !enough(least.iter().map(|(kept, _)| kept.bytes).sum()) {
            return false;
        }
        least.sort_by_key(|(kept, wanted)| (*wanted, kept.key));
        let mut dropped_bytes = 0;
        for (kept, _) in least {
            if enough(dropped_bytes) {
                break;
            }
            if self.drop_slice(kept.key) {
                dropped_bytes += kept.bytes;
            }
        }
        // Zero if workers took them all meanwhile.
        dropped_bytes > 0
    }

    fn unexpected_slices(&self) -> Vec<SliceKey> {
        let ready = self.decoded.ready().into_iter();
        ready.filter(|(_, expected)| *expected == 0).map(|(key, _)| key).collect()
    }

    /// Drops a decoded slice unless workers expect it; true if it was there.
    fn drop_slice(&self, key: SliceKey) -> bool {
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
