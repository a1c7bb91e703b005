//! The pool: the pages held, the order of their last use, and their bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{PageId, TableId};
use crate::pages::{Page, Residency, Source};

/// The bytes held and the cached pages by their last use.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// The most bytes that may be held (I3).
    pub(crate) limit_bytes: u64,
    /// Bytes cached and being read.
    pub(crate) held_bytes: u64,
    /// Bytes of cached pages that neither a worker nor a load holds.
    pub(crate) unpinned_bytes: u64,
    /// Cached pages, least recently used first.
    pub(crate) cached: BTreeSet<(u64, PageId)>,
    /// Cached pages that no running scan needs, by the first table that lists them, if any does. No set is empty.
    pub(crate) unneeded: BTreeMap<Option<TableId>, BTreeSet<(u64, PageId)>>,
    /// Cached pages that are in the pool of another server, too, least recently used first.
    pub(crate) copies: BTreeSet<(u64, PageId)>,
    /// Tables whose unneeded pages have changed, or were used, since this was last taken.
    pub(crate) changed: BTreeSet<TableId>,
    uses: u64,
    /// The count of uses when the period of [`Self::begin_period`] began.
    period_began: u64,
}

impl Pool {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            held_bytes: 0,
            unpinned_bytes: 0,
            cached: BTreeSet::new(),
            unneeded: BTreeMap::new(),
            copies: BTreeSet::new(),
            changed: BTreeSet::new(),
            uses: 0,
            period_began: 0,
        }
    }

    /// Takes space for a page to be read.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.held_bytes += bytes;
        assert!(self.held_bytes <= self.limit_bytes, "I3: the pool holds no more than its limit");
    }

    /// Returns space.
    pub(crate) fn give(&mut self, bytes: u64) {
        self.held_bytes =
            self.held_bytes.checked_sub(bytes).expect("I3: space given back was taken");
    }

    /// Begins a period. Returns the count of uses at the beginning of the one before.
    pub(crate) fn begin_period(&mut self) -> u64 {
        std::mem::replace(&mut self.period_began, self.uses)
    }

    /// Indexes a page as the one used last.
    pub(crate) fn touch(&mut self, id: PageId, page: &mut Page) {
        self.unindex(id, page);
        self.uses += 1;
        page.used_at = self.uses;
        self.reindex(id, page);
    }

    /// Indexes a page anew after its slices changed; its last use stays.
    pub(crate) fn reindex(&mut self, id: PageId, page: &Page) {
        if page.residency == Residency::Cached {
            self.cached.insert((page.used_at, id));
            if page.source == Source::PeerPool {
                self.copies.insert((page.used_at, id));
            }
            self.reindex_needed(id, page);
        }
    }

    /// Indexes a page anew after it became needed or unneeded.
    pub(crate) fn reindex_needed(&mut self, id: PageId, page: &Page) {
        if page.residency != Residency::Cached {
            return;
        }
        if page.needed_count == 0 {
            let home = page.home();
            self.unneeded.entry(home).or_default().insert((page.used_at, id));
            self.changed.extend(home);
        } else {
            self.unindex_unneeded(id, page);
        }
    }

    /// Removes a page from all indexes.
    pub(crate) fn unindex(&mut self, id: PageId, page: &Page) {
        self.cached.remove(&(page.used_at, id));
        self.copies.remove(&(page.used_at, id));
        self.unindex_unneeded(id, page);
    }

    fn unindex_unneeded(&mut self, id: PageId, page: &Page) {
        let home = page.home();
        if let Some(pages) = self.unneeded.get_mut(&home)
            && pages.remove(&(page.used_at, id))
        {
            if pages.is_empty() {
                self.unneeded.remove(&home);
            }
            self.changed.extend(home);
        }
    }
}
