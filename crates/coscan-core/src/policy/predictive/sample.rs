//! A random sample of the cached pages: a cheaper way to find one with a late next use.

use crate::ids::PageId;
use crate::policy::page_map::PageMap;
use crate::random::SplitMix64;

/// The cached pages, in no order.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pages: Vec<PageId>,
    /// The position of each page in `pages`.
    positions: PageMap<usize>,
    draws: SplitMix64,
}

impl Sample {
    pub(super) fn insert(&mut self, id: PageId) {
        if !self.positions.contains(id) {
            self.pages.push(id);
            self.positions.insert(id, self.pages.len() - 1);
        }
    }

    pub(super) fn remove_page(&mut self, id: PageId) {
        let Some(position) = self.positions.remove(id) else { return };
        self.pages.swap_remove(position);
        if let Some(&moved) = self.pages.get(position) {
            self.positions.insert(moved, position);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// A random page. It depends on the number of draws before only, so a run can be repeated.
    pub(super) fn draw(&mut self) -> Option<PageId> {
        let position = self.draws.next_u64().checked_rem(self.pages.len() as u64)?;
        self.pages.get(position as usize).copied()
    }
}
