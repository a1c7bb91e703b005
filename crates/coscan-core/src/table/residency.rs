//! The residency of a slice: how many of its pages are where.

use crate::classes::ClassKey;
use crate::ids::GroupIndex;
use crate::pages::Residency;

/// The numbers of pages of a slice that are cold, being read and cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResidencyCounts {
    pub(crate) cold: u32,
    pub(crate) reading: u32,
    pub(crate) cached: u32,
}

impl ResidencyCounts {
    pub(crate) fn of(residencies: impl Iterator<Item = Residency>) -> Self {
        let mut counts = Self::default();
        residencies.for_each(|residency| *counts.count(residency) += 1);
        counts
    }

    pub(crate) fn count(&mut self, residency: Residency) -> &mut u32 {
        match residency {
            Residency::Cold => &mut self.cold,
            Residency::Reading => &mut self.reading,
            Residency::Cached => &mut self.cached,
        }
    }

    /// Whether some are cold, being read, cached.
    pub(crate) fn kinds(self) -> (bool, bool, bool) {
        (self.cold > 0, self.reading > 0, self.cached > 0)
    }

    /// Whether some are not in the pool.
    pub(super) fn has_missing(self) -> bool {
        self.cold > 0 || self.reading > 0
    }

    /// Writes into the key of a chunk whether a column group has cold pages, pages being read and cached ones.
    pub(crate) fn write_to(self, key: &mut ClassKey, group: GroupIndex) {
        key.cold.set(group, self.cold > 0);
        key.reading.set(group, self.reading > 0);
        key.cached.set(group, self.cached > 0);
    }
}
