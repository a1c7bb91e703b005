//! Something for each page, found in one step.

use crate::ids::{Index, PageId};

/// A map from pages that takes room for as many pages as there were at once.
#[derive(Clone, Debug)]
pub(super) struct PageMap<T> {
    pages: Vec<Option<T>>,
}

impl<T> Default for PageMap<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T> PageMap<T> {
    pub(super) fn contains(&self, id: PageId) -> bool {
        self.pages.get(id.as_usize()).is_some_and(Option::is_some)
    }

    pub(super) fn insert(&mut self, id: PageId, value: T) {
        let page = id.as_usize();
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page] = Some(value);
    }

    pub(super) fn remove(&mut self, id: PageId) -> Option<T> {
        self.pages.get_mut(id.as_usize())?.take()
    }
}
