//! The residency of a slice: the number of its pages in each place.

use crate::classes::ClassKey;
use crate::ids::GroupIndex;
use crate::pages::{Page, Place};

/// The number of pages of a slice in each place. The others are in the pool; they are not counted, since there is one
/// such struct for each slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ResidencyCounts {
    far: u32,
    nearby: u32,
    reading: u32,
}

/// The places in which a slice has pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kinds {
    pub(super) cold: bool,
    /// The slice has cold pages, and all of them are in the pool of another server.
    pub(super) nearby: bool,
    reading: bool,
    cached: bool,
}

impl Kinds {
    /// Whether some pages are not in the pool.
    pub(super) fn has_missing(self) -> bool {
        self.cold || self.reading
    }

    /// Writes the kinds of a column group into the key of a chunk.
    pub(crate) fn write_to(self, key: &mut ClassKey, group: GroupIndex) {
        key.cold.set(group, self.cold);
        key.nearby.set(group, self.nearby);
        key.reading.set(group, self.reading);
        key.cached.set(group, self.cached);
    }
}

impl ResidencyCounts {
    pub(crate) fn of<'a>(pages: impl Iterator<Item = &'a Page>) -> Self {
        let mut counts = Self::default();
        pages.for_each(|page| counts.add(page.place()));
        counts
    }

    pub(crate) fn add(&mut self, place: Place) {
        if let Some(count) = self.count(place) {
            *count += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: Place) {
        if let Some(count) = self.count(place) {
            *count -= 1;
        }
    }

    fn count(&mut self, place: Place) -> Option<&mut u32> {
        match place {
            Place::Far => Some(&mut self.far),
            Place::Nearby => Some(&mut self.nearby),
            Place::Reading => Some(&mut self.reading),
            Place::Cached => None,
        }
    }

    /// Pages that are neither in the pool nor being read.
    pub(crate) fn cold(self) -> u32 {
        self.far + self.nearby
    }

    pub(crate) fn reading(self) -> u32 {
        self.reading
    }

    /// The number of pages in the pool, given the number of all.
    pub(crate) fn cached(self, pages: usize) -> u32 {
        pages as u32 - self.cold() - self.reading
    }

    /// The kinds of pages that there are, given the number of all.
    pub(crate) fn kinds(self, pages: usize) -> Kinds {
        Kinds {
            cold: self.cold() > 0,
            nearby: self.far == 0 && self.nearby > 0,
            reading: self.reading > 0,
            cached: self.cached(pages) > 0,
        }
    }
}
