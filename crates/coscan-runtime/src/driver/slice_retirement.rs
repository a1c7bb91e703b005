//! Decoded columns. Core is told of them, and reports when no scan needs them any more.

use super::decoded_slices::CoreSlice;
use super::state::State;
use crate::chunks::decode_cache::{Retired, SliceKey};

/// The number of idle columns that are dropped while the lock is held once.
pub(super) const IDLE_STEP: usize = 64;

impl State {
    /// The number of scans that still need a column of a chunk, of all tables that list the file. Core counts by column
    /// group, which may hold other columns.
    pub(super) fn interested(&self, key: SliceKey) -> usize {
        let state = self.core.state();
        let slices = self.slices_of(key).into_iter();
        slices.map(|(table, chunk, group)| state.slice_interest(table, chunk, group)).sum()
    }

    /// Notes that a column of a chunk is decoded. Core reports when no scan needs it any more, which may be now.
    pub(super) fn note_decoded(&mut self, key: SliceKey) {
        for slice in self.slices_of(key) {
            if self.decoded_slices.add(key, slice) {
                self.core.slice_decoded(slice.0, slice.1, slice.2);
            }
        }
    }

    /// Handles a slice that no scan of this table needs any more.
    pub(super) fn slice_unneeded(&mut self, slice: CoreSlice) {
        for key in self.decoded_slices.columns_of(slice) {
            if self.interested(key) == 0 {
                self.retire_slice(key);
            } else {
                // A table may list the file since the column was decoded. Core shall report when
                // its scans are done.
                self.note_decoded(key);
            }
        }
    }

    /// Drops a decoded column unless a worker expects it or a scan needs it, or keeps it for later scans.
    pub(super) fn drop_unneeded(&mut self, key: SliceKey) {
        if self.interested(key) == 0 {
            self.retire_slice(key);
        } else {
            // Core may know the slice of another table only. It shall report when the scans are done.
            self.note_decoded(key);
        }
    }

    /// Keeps a decoded column that no scan needs for later scans if it was used before and there is room, or drops it.
    fn retire_slice(&mut self, key: SliceKey) {
        let is_listed = !self.slices_of(key).is_empty();
        match self.decoded.retire(key) {
            Retired::StillUsed => {}
            Retired::UsedBefore { due } if is_listed && self.make_room_for_idle(due) => {
                self.decoded.keep_idle(key, due);
            }
            Retired::New | Retired::UsedBefore { .. } => drop(self.drop_slice(key)),
        }
    }

    /// Makes room for an idle column that is overdue by then. Drops others that are overdue already, or later, a few at a time.
    /// Returns false if that is not enough.
    pub(super) fn make_room_for_idle(&mut self, due: u64) -> bool {
        for _ in 0..IDLE_STEP {
            // What was dropped is free once the lock is released.
            let missing_bytes = self.memory.missing_for_idle_bytes();
            if missing_bytes <= self.effects.unneeded_bytes {
                return true;
            }
            let Some(idle) = self.decoded.first_to_drop(Some(due)) else { return false };
            self.drop_idle_slice(idle);
        }
        false
    }

    /// Drops an idle column. Returns its bytes. If a scan needs it meanwhile, it stays, but is not idle any more.
    pub(super) fn drop_idle_slice(&mut self, key: SliceKey) -> u64 {
        if self.interested(key) > 0 {
            self.decoded.mark_needed(key);
            self.note_decoded(key);
            return 0;
        }
        let before_bytes = self.effects.unneeded_bytes;
        self.drop_slice(key);
        self.effects.unneeded_bytes - before_bytes
    }

    /// Drops a decoded column unless workers expect it. Returns true if it was there.
    pub(super) fn drop_slice(&mut self, key: SliceKey) -> bool {
        let Some((slice, bytes)) = self.decoded.remove_unexpected(key) else { return false };
        self.effects.unneeded.push(slice);
        self.effects.unneeded_bytes += bytes;
        let listed = self.slices_of(key);
        for slice in self.decoded_slices.remove(key) {
            // The index of a chunk that was retired meanwhile may belong to another one.
            if listed.contains(&slice) {
                self.core.slice_dropped(slice.0, slice.1, slice.2);
            }
        }
        true
    }

    /// The slices of core that a column of a chunk belongs to, of all tables that list the file.
    fn slices_of(&self, key: SliceKey) -> Vec<CoreSlice> {
        let listings = self.registry.listings(key.file, key.chunk);
        let of_table = |(table, chunk)| {
            let group = self.registry.group(table, key.file, key.column)?;
            Some((table, chunk, group))
        };
        listings.filter_map(of_table).collect()
    }
}
