//! Memory reclaimed where it is needed least: from idle decoded columns first, then from unused metadata, then from decoded
//! columns that no worker expects.

use std::sync::Arc;

use coscan_core::MissingMemory;

use super::handle::Driver;
use super::slice_retirement::IDLE_STEP;
use crate::chunks::decode_cache::SliceKey;

impl Driver {
    /// The number of scans that still need each of these decoded columns.
    pub(crate) fn interested(&self, slices: impl IntoIterator<Item = SliceKey>) -> Vec<usize> {
        let state = self.lock();
        slices.into_iter().map(|key| state.interested(key)).collect()
    }

    /// Drops idle decoded columns until this many bytes are given up. Returns false if there are none.
    pub(crate) fn drop_idle(self: &Arc<Self>, bytes: u64) -> bool {
        let mut dropped_bytes = 0;
        while dropped_bytes < bytes && self.decoded.idle_bytes() > 0 {
            self.call(|state, _| {
                for _ in 0..IDLE_STEP {
                    let Some(idle) = state.decoded.first_to_drop(None) else { return };
                    dropped_bytes += state.drop_idle_slice(idle);
                    if dropped_bytes >= bytes {
                        return;
                    }
                }
            });
        }
        dropped_bytes > 0
    }

    /// Drops idle decoded columns that are in the way of this many bytes more, and what is being collected for later scans if
    /// they are too few. Drops none for a request that is too large in any case.
    pub(crate) fn displace_idle(self: &Arc<Self>, bytes: u64) {
        let displaced_bytes = self.memory.displaced_idle_bytes(bytes);
        if displaced_bytes == 0 {
            return;
        }
        let total_bytes = self.memory.usage().total_bytes();
        let used_bytes = total_bytes.saturating_sub(self.decoded.idle_bytes());
        let least_bytes = used_bytes.saturating_add(bytes) + self.options.pool_bytes_min;
        if least_bytes > self.memory.budget_bytes() {
            return;
        }
        self.drop_idle(displaced_bytes);
        if self.memory.displaced_idle_bytes(bytes) > 0 {
            self.stop_collecting();
        }
    }

    /// Gives up what is being collected for later scans. Returns false if there is nothing.
    fn stop_collecting(&self) -> bool {
        !self.decoded.stop_collecting().is_empty()
    }

    /// Whether a scan may continue to collect a decoded column that is overdue by then. Drops idle columns for it that are
    /// overdue later.
    pub(crate) fn may_collect(self: &Arc<Self>, due: u64) -> bool {
        self.memory.missing_for_idle_bytes() == 0
            || self.call(|state, _| state.make_room_for_idle(due))
    }

    /// Drops idle decoded columns that were not used since the last call.
    pub(super) fn drop_unused_idle(self: &Arc<Self>) {
        for keys in self.decoded.unused_since_last().chunks(IDLE_STEP) {
            self.call(|state, _| {
                for &key in keys {
                    state.drop_idle_slice(key);
                }
            });
        }
    }

    /// Reclaims memory once: drops idle decoded columns; if there are none, metadata that is not in use, then decoded columns
    /// that no worker expects; if none of these is enough, what is being collected for later scans, then footers of files
    /// closed meanwhile. Returns whether it is worth trying again.
    pub(crate) fn reclaim(self: &Arc<Self>, missing: MissingMemory) -> bool {
        // The search for closed files takes longest.
        self.reclaim_unused(missing) || self.stop_collecting() || self.open_files().forget_closed()
    }

    fn reclaim_unused(self: &Arc<Self>, missing: MissingMemory) -> bool {
        let unused_bytes = self.metadata_cache().unused_bytes(missing.bytes.max(1));
        let is_enough = |decoded_bytes| unused_bytes.saturating_add(decoded_bytes) >= missing.bytes;
        if is_enough(self.decoded.unexpected_bytes()) && self.drop_idle(missing.bytes) {
            return true;
        }
        if unused_bytes == 0 {
            return self.reclaim_slices(missing, usize::MAX);
        }
        // The pass over all decoded columns comes last.
        is_enough(self.decoded.unexpected_bytes())
            && is_enough(self.decoded.kept().iter().map(|kept| kept.bytes).sum())
            && self.reclaim_metadata(missing)
    }

    /// Drops unused metadata until the missing bytes are free, or there is no more. Returns false if none was dropped.
    pub(super) fn reclaim_metadata(&self, missing: MissingMemory) -> bool {
        let metadata_bytes = || self.memory.usage().metadata_bytes;
        let before_bytes = metadata_bytes();
        self.metadata_cache().drop_unused(missing, || {
            self.open_files().forget_closed(); // Footers of files that only the values kept open.
            before_bytes.saturating_sub(metadata_bytes()) >= missing.bytes
        })
    }

    /// Drops decoded columns that no worker expects and at most `scans_max` scans need, least needed first, until the
    /// missing bytes are free. If all of them are too few, drops none and returns false.
    pub(super) fn reclaim_slices(
        self: &Arc<Self>,
        missing: MissingMemory,
        scans_max: usize,
    ) -> bool {
        let is_enough = |bytes: u64| bytes >= missing.bytes;
        if !is_enough(self.decoded.unexpected_bytes()) {
            return false; // Whatever a pass over all of them would find.
        }
        let kept = self.decoded.kept();
        if !is_enough(kept.iter().map(|kept| kept.bytes).sum()) {
            return false;
        }
        let scans = self.interested(kept.iter().map(|kept| kept.key));
        let mut candidates: Vec<_> =
            kept.iter().zip(scans).filter(|(_, scans)| *scans <= scans_max).collect();
        if !is_enough(candidates.iter().map(|(kept, _)| kept.bytes).sum()) {
            return false;
        }
        candidates.sort_by_key(|(kept, scans)| (*scans, kept.key));
        let mut dropped_bytes = 0;
        for (kept, _) in candidates {
            if is_enough(dropped_bytes) {
                break;
            }
            if self.call(|state, _| state.drop_slice(kept.key)) {
                dropped_bytes += kept.bytes;
            }
        }
        // The sum is zero if workers have taken all of them meanwhile.
        dropped_bytes > 0
    }
}
