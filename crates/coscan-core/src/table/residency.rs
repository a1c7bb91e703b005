//! The residency of a slice: how many of its pages are where.

use crate::classes::ClassKey;
use crate::ids::GroupIndex;
use crate::pages::{Page, Place};

/// The number of pages of a slice in each place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResidencyCounts {
    far: u32,
    nearby: u32,
    reading: u32,
    cached: u32,
}

/// Which pages a slice has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kinds {
    pub(super) cold: bool,
    /// Cold ones, all of them in the pool of another server.
    pub(super) nearby: bool,
    reading: bool,
    cached: bool,
}

impl Kinds {
    /// Whether some are not in the pool.
    pub(super) fn has_missing(self) -> bool {
        self.cold || self.reading
    }
}

impl ResidencyCounts {
    pub(crate) fn of<'a>(pages: impl Iterator<Item = &'a Page>) -> Self {
        let mut counts = Self::default();
        pages.for_each(|page| counts.add(page.place()));
        counts
    }

    pub(crate) fn add(&mut self, place: Place) {
        *self.count(place) += 1;
    }

    pub(crate) fn remove(&mut self, place: Place) {
        *self.count(place) -= 1;
    }

    fn count(&mut self, place: Place) -> &mut u32 {
        match place {
            Place::Far => &mut self.far,
            Place::Nearby => &mut self.nearby,
            Place::Reading => &mut self.reading,
            Place::Cached => &mut self.cached,
        }
    }

    /// Pages that are neither in the pool nor being read.
    pub(crate) fn cold(self) -> u32 {
        self.far + self.nearby
    }

    pub(crate) fn reading(self) -> u32 {
        self.reading
    }

    pub(crate) fn cached(self) -> u32 {
        self.cached
    }

    pub(crate) fn kinds(self) -> Kinds {
        Kinds {
            cold: self.cold() > 0,
            nearby: self.far == 0 && self.nearby > 0,
            reading: self.reading > 0,
            cached: self.cached > 0,
        }
    }

    /// Writes into the key of a chunk which pages a column group has.
    pub(crate) fn write_to(self, key: &mut ClassKey, group: GroupIndex) {
        let kinds = self.kinds();
        key.cold.set(group, kinds.cold);
        key.nearby.set(group, kinds.nearby);
        key.reading.set(group, kinds.reading);
        key.cached.set(group, kinds.cached);
    }
}
