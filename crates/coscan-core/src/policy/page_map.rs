//! Something for each page, found in one step.

use crate::ids::{Index, PageId};

/// A map from pages that takes room for as many pages as it has seen.
#[derive(Clone, Debug)]
pub(super) struct PageMap<T> {
    tables: Vec<Vec<Option<T>>>,
}

impl<T> Default for PageMap<T> {
    fn default() -> Self {
        Self { tables: Vec::new() }
    }
}

impl<T> PageMap<T> {
    /// What is kept for a page, to be read or changed.
    pub(super) fn entry(&mut self, id: PageId) -> &mut Option<T> {
        let (table, page) = (id.table.as_usize(), id.page.as_usize());
        if table >= self.tables.len() {
            self.tables.resize_with(table + 1, Vec::new);
        }
        let pages = &mut self.tables[table];
        if page >= pages.len() {
            pages.resize_with(page + 1, || None);
        }
        &mut pages[page]
    }
}
