//! The pool: which pages are held, in what order they were used, and how many bytes that makes.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{PageId, TableId};
use crate::pages::{Page, Place};

/// The bytes held and the orders in which cached pages can go.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// I3: `held_bytes` never exceeds this.
    pub(crate) limit_bytes: u64,
    /// Bytes cached and being read.
    pub(crate) held_bytes: u64,
    /// Cached pages, least recently used first.
    pub(crate) cached: BTreeSet<(u64, PageId)>,
    /// Of those, the ones that no scan will come to, by the first table that lists them, if any does. No set is empty.
    pub(crate) unwanted: BTreeMap<Option<TableId>, BTreeSet<(u64, PageId)>>,
    /// Tables of which unwanted pages came, went or were used since that was last taken.
    pub(crate) changed: BTreeSet<TableId>,
    uses: u64,
    /// How many uses there were when the period of [`Self::begin_period`] began.
    period_began: u64,
}

impl Pool {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            held_bytes: 0,
            cached: BTreeSet::new(),
            unwanted: BTreeMap::new(),
            changed: BTreeSet::new(),
            uses: 0,
            period_began: 0,
        }
    }

    /// Takes room for a page that is about to be read.
    pub(crate) fn take(&mut self, bytes: u64) {
        self.held_bytes += bytes;
        assert!(self.held_bytes <= self.limit_bytes, "I3: the pool holds no more than its limit");
    }

    /// Gives room back.
    pub(crate) fn give(&mut self, bytes: u64) {
        self.held_bytes =
            self.held_bytes.checked_sub(bytes).expect("I3: room given back was taken");
    }

    /// Begins a period; returns the count of uses at which the one that ends here began.
    pub(crate) fn begin_period(&mut self) -> u64 {
        std::mem::replace(&mut self.period_began, self.uses)
    }

    /// Files a page in the orders it belongs to, as the one used last.
    pub(crate) fn file(&mut self, id: PageId, page: &mut Page) {
        self.unindex(id, page);
        self.uses += 1;
        page.used_at = self.uses;
        self.reindex(id, page);
    }

    /// Files a page anew, at its old time of use, that may be wanted now, or may not, or by other tables.
    pub(crate) fn reindex(&mut self, id: PageId, page: &Page) {
        if page.place == Place::Cached {
            self.cached.insert((page.used_at, id));
            self.reindex_wanted(id, page);
        }
    }

    /// The same for a page that may be wanted now, or may not, by the same tables.
    pub(crate) fn reindex_wanted(&mut self, id: PageId, page: &Page) {
        if page.place != Place::Cached {
            return;
        }
        if page.wanted == 0 {
            let home = page.home();
            self.unwanted.entry(home).or_default().insert((page.used_at, id));
            self.changed.extend(home);
        } else {
            self.unindex_unwanted(id, page);
        }
    }

    /// Takes a page out of all orders.
    pub(crate) fn unindex(&mut self, id: PageId, page: &Page) {
        self.cached.remove(&(page.used_at, id));
        self.unindex_unwanted(id, page);
    }

    fn unindex_unwanted(&mut self, id: PageId, page: &Page) {
        let home = page.home();
        if let Some(pages) = self.unwanted.get_mut(&home)
            && pages.remove(&(page.used_at, id))
        {
            if pages.is_empty() {
                self.unwanted.remove(&home);
            }
            self.changed.extend(home);
        }
    }
}
