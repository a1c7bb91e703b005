//! A map from pages to values as an array.

use crate::ids::{Index, PageId};

/// A map with pages as keys. Its memory is bounded by the largest number of pages at any time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_pages_take_no_memory() {
        let mut map = PageMap::default();
        (0..1000).for_each(|page| assert_eq!(map.remove(PageId(page)), None::<u32>));
        assert_eq!(map.pages.capacity(), 0);
        map.insert(PageId(3), 7);
        (0..1000).for_each(|page| assert!(page == 3 || map.remove(PageId(page)).is_none()));
        assert_eq!((map.pages.len(), map.remove(PageId(3))), (4, Some(7)));
    }

    #[test]
    fn tables_one_after_the_other_take_the_memory_of_one() {
        let mut pages = crate::pages::Pages::default();
        let mut map = PageMap::default();
        for table in 0..100 {
            let first = pages.add(&[1; 50]);
            let ids = (first.0..first.0 + 50).map(PageId);
            ids.clone().for_each(|id| map.insert(id, table));
            ids.for_each(|id| assert_eq!(map.remove(id), Some(table)));
            pages.remove(first..PageId(first.0 + 50));
        }
        assert_eq!(map.pages.len(), 50);
    }
}
