//! A lazy k-way merge of the sorted lists of many tables: a list is opened when its first item is next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::ids::TableId;

/// The sorted lists of tables, by the key of their first item.
#[derive(Clone, Debug)]
pub(super) struct KWayMerge<K> {
    keys: BTreeMap<TableId, K>,
    order: BTreeSet<(K, Reverse<TableId>)>,
}

impl<K> Default for KWayMerge<K> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> KWayMerge<K> {
    /// Sets the key of the first item of the list of a table; `None` if the list is empty.
    pub(super) fn set(&mut self, table: TableId, key: Option<K>) {
        let before = match key {
            Some(key) => self.keys.insert(table, key),
            None => self.keys.remove(&table),
        };
        if before != key {
            before.inspect(|&before| {
                self.order.remove(&(before, Reverse(table)));
            });
            self.order.extend(key.map(|key| (key, Reverse(table))));
        }
    }

    /// The tables by their keys, largest first; ties go to the oldest table.
    pub(super) fn largest_first(&self) -> impl Iterator<Item = (K, TableId)> + '_ {
        self.order.iter().rev().map(|&(key, Reverse(table))| (key, table))
    }

    /// The items of all lists by their keys, largest first; ties go to the oldest table. `open` gives the list of a table:
    /// items with keys, none larger than the one before.
    pub(super) fn merge<'a, I: Iterator<Item = (K, T)>, T>(
        &'a self,
        open: impl Fn(TableId) -> I + 'a,
    ) -> impl Iterator<Item = (TableId, T)> {
        let mut closed = self.largest_first().peekable();
        let mut lists: BinaryHeap<List<K, T, I>> = BinaryHeap::new();
        std::iter::from_fn(move || {
            let is_next = |&(key, table): &(K, TableId), lists: &BinaryHeap<List<K, T, I>>| {
                lists.peek().is_none_or(|list| (key, Reverse(table)) > list.rank())
            };
            while let Some((_, table)) = closed.next_if(|first| is_next(first, &lists)) {
                lists.extend(List::of(table, open(table)));
            }
            let List { table, item, rest, .. } = lists.pop()?;
            lists.extend(List::of(table, rest));
            Some((table, item))
        })
    }
}

/// An open list and its next item.
struct List<K, T, I> {
    table: TableId,
    key: K,
    item: T,
    rest: I,
}

impl<K: Ord + Copy, T, I: Iterator<Item = (K, T)>> List<K, T, I> {
    fn of(table: TableId, mut items: I) -> Option<Self> {
        let (key, item) = items.next()?;
        Some(Self { table, key, item, rest: items })
    }
}

impl<K: Copy, T, I> List<K, T, I> {
    fn rank(&self) -> (K, Reverse<TableId>) {
        (self.key, Reverse(self.table))
    }
}

impl<K: Ord + Copy, T, I> Ord for List<K, T, I> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<K: Ord + Copy, T, I> PartialOrd for List<K, T, I> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord + Copy, T, I> PartialEq for List<K, T, I> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<K: Ord + Copy, T, I> Eq for List<K, T, I> {}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const LISTS: [&[u32]; 4] = [&[7, 3, 3], &[], &[9, 7, 1], &[5]];

    #[test]
    fn lists_come_out_in_one_order_and_are_opened_when_they_are_next() {
        let mut lists = KWayMerge::default();
        for (table, list) in (0..).map(TableId).zip(LISTS) {
            lists.set(table, Some(0));
            lists.set(table, list.first().copied());
        }
        let opened = RefCell::new(Vec::new());
        let open = |table: TableId| {
            opened.borrow_mut().push(table.0);
            LISTS[table.0 as usize].iter().map(|&item| (item, item))
        };
        let mut merged = lists.merge(open);
        assert_eq!(merged.next(), Some((TableId(2), 9)));
        assert_eq!(*opened.borrow(), [2], "the others have nothing before it");
        let rest: Vec<_> = merged.map(|(table, item)| (table.0, item)).collect();
        assert_eq!(rest, [(0, 7), (2, 7), (3, 5), (0, 3), (0, 3), (2, 1)]);
        assert_eq!(*opened.borrow(), [2, 0, 3]);
    }
}
