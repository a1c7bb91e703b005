//! All pages, whichever tables list them: the residency, pins and slices of each.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut, Range};

use serde::{Deserialize, Serialize};

use crate::ids::{Index as _, PageId, ScanId, SliceId, TableId};

/// Whether a page is in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Residency {
    /// Not in the pool.
    Cold,
    /// Being read; its space in the pool is taken already.
    Reading,
    /// In the pool.
    Cached,
}

/// The origin of a page when it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The device of its table.
    #[default]
    Device,
    /// Another server, which reads it from its device.
    Peer,
    /// Another server, which has it in its pool and so at a lower cost.
    PeerPool,
}

/// The place of a page, as slices count it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Not in the pool, nor in that of another server as far as is known.
    Far,
    /// In the pool of another server only.
    Nearby,
    Reading,
    Cached,
}

/// A page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Bytes to be read and held.
    pub(crate) bytes: u64,
    pub(crate) residency: Residency,
    pub(crate) source: Source,
    /// Workers that use it and loads that hold it. While above 0 it stays (I2).
    pub(crate) pins: u32,
    /// The number of needed chunks, over all running scans, that it is part of.
    pub(crate) needed_count: u32,
    /// When it was last used, as a count of uses.
    pub(crate) used_at: u64,
    /// The scan that it was read for, until a worker of it has used it.
    pub(crate) read_for: Option<ScanId>,
    /// The slices that it is part of.
    slices: Slices,
}

/// The slices of a page, of which there is nearly always only one.
#[derive(Clone, Debug)]
enum Slices {
    One(SliceId),
    Many(Box<[SliceId]>),
}

impl Page {
    fn cold(bytes: u64) -> Self {
        Self {
            bytes,
            residency: Residency::Cold,
            source: Source::Device,
            pins: 0,
            needed_count: 0,
            used_at: 0,
            read_for: None,
            slices: Slices::Many(Box::default()),
        }
    }

    pub(crate) fn place(&self) -> Place {
        match (self.residency, self.source) {
            (Residency::Cold, Source::PeerPool) => Place::Nearby,
            (Residency::Cold, _) => Place::Far,
            (Residency::Reading, _) => Place::Reading,
            (Residency::Cached, _) => Place::Cached,
        }
    }

    /// The slices that it is part of, those that were added first in front.
    pub(crate) fn slices(&self) -> &[SliceId] {
        match &self.slices {
            Slices::One(slice) => std::slice::from_ref(slice),
            Slices::Many(slices) => slices,
        }
    }

    /// The first table that lists it.
    pub(crate) fn home(&self) -> Option<TableId> {
        self.slices().first().map(|slice| slice.table)
    }

    /// Adds a slice that it is part of.
    pub(crate) fn join(&mut self, slice: SliceId) {
        self.set_slices([self.slices(), &[slice]].concat());
    }

    /// Removes a slice that it was part of.
    pub(crate) fn leave(&mut self, slice: SliceId) {
        let left = self.slices().iter().copied().filter(|&other| other != slice);
        self.set_slices(left.collect());
    }

    fn set_slices(&mut self, slices: Vec<SliceId>) {
        self.slices = match slices.as_slice() {
            [slice] => Slices::One(*slice),
            _ => Slices::Many(slices.into()),
        };
    }
}

/// All pages, by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    /// Runs of free ids below the highest ever taken: their first id and length.
    free: BTreeMap<usize, usize>,
}

impl Pages {
    /// Adds cold pages of these sizes in bytes. Their ids are consecutive; returns the first.
    pub(crate) fn add(&mut self, bytes: &[u64]) -> PageId {
        let fitting = self.free.iter().find(|(_, free)| **free >= bytes.len());
        let start = match fitting.map(|(&start, &free)| (start, free)) {
            Some((start, free)) => {
                self.free.remove(&start);
                if free > bytes.len() {
                    self.free.insert(start + bytes.len(), free - bytes.len());
                }
                start
            }
            None => self.pages.len(),
        };
        for (position, &bytes) in (start..).zip(bytes) {
            match self.pages.get_mut(position) {
                Some(page) => *page = Page::cold(bytes),
                None => self.pages.push(Page::cold(bytes)),
            }
        }
        PageId::from_usize(start)
    }

    /// Frees the ids of pages that are neither listed, in use nor being read.
    pub(crate) fn remove(&mut self, pages: Range<PageId>) {
        let (mut start, mut end) = (pages.start.as_usize(), pages.end.as_usize());
        if start == end {
            return;
        }
        if let Some((&before, &free)) = self.free.range(..start).next_back()
            && before + free == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(free) = self.free.remove(&end) {
            end += free;
        }
        self.free.insert(start, end - start);
    }

    /// Whether all these ids are taken.
    pub(crate) fn contains(&self, pages: &Range<PageId>) -> bool {
        let (start, end) = (pages.start.as_usize(), pages.end.as_usize());
        let free = self.free.range(..end).next_back();
        end <= self.pages.len() && free.is_none_or(|(&from, &free)| from + free <= start)
    }

    /// All pages with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, &Page)> {
        let all = (0..self.pages.len()).map(PageId::from_usize);
        let taken = all.filter(|&id| self.contains(&(id..PageId(id.0 + 1))));
        taken.map(|id| (id, &self[id]))
    }
}

impl Index<PageId> for Pages {
    type Output = Page;

    fn index(&self, id: PageId) -> &Page {
        &self.pages[id.as_usize()]
    }
}

impl IndexMut<PageId> for Pages {
    fn index_mut(&mut self, id: PageId) -> &mut Page {
        &mut self.pages[id.as_usize()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(range: Range<u32>) -> Range<PageId> {
        PageId(range.start)..PageId(range.end)
    }

    #[test]
    fn free_ids_are_given_again_and_neighbours_together() {
        let mut pages = Pages::default();
        assert_eq!(pages.add(&[1; 4]), PageId(0));
        assert_eq!(pages.add(&[2; 3]), PageId(4));
        assert_eq!(pages.add(&[3; 2]), PageId(7));
        pages.remove(ids(0..4));
        assert!(!pages.contains(&ids(3..5)) && pages.contains(&ids(4..7)));
        pages.remove(ids(4..7));
        assert_eq!(pages.add(&[4; 6]), PageId(0), "both together are large enough");
        assert_eq!(pages.add(&[5; 2]), PageId(9), "one that is free is too few");
        assert_eq!(pages.add(&[6; 1]), PageId(6));
        assert!(pages.contains(&ids(0..11)) && !pages.contains(&ids(10..12)));
        assert_eq!(pages.iter().map(|(_, page)| page.bytes).sum::<u64>(), 24 + 6 + 6 + 10);
    }
}
