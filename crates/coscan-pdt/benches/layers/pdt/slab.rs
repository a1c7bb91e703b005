//! Items of one size in one piece of memory, so that a copy of all is a copy of bytes.

use std::ops::Range;

/// Groups of `width` items each, named by numbers.
pub(super) struct Slab<T> {
    items: Vec<T>,
    width: usize,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) fn new(width: usize) -> Self {
        Self { items: Vec::new(), width, free: Vec::new() }
    }

    pub(super) fn put(&mut self, group: &[T]) -> u32 {
        debug_assert_eq!(group.len(), self.width, "all groups have one size");
        if let Some(at) = self.free.pop() {
            self.group_mut(at).copy_from_slice(group);
            return at;
        }
        if self.items.len() + self.width > self.items.capacity() {
            // A quarter more: doubling would leave up to a half of the memory unused, which is compared.
            self.items.reserve_exact(self.width.max(self.items.len() / 4));
        }
        self.items.extend_from_slice(group);
        (self.items.len() / self.width - 1) as u32
    }

    pub(super) fn free(&mut self, at: u32) {
        self.free.push(at);
    }

    pub(super) fn group(&self, at: u32) -> &[T] {
        &self.items[self.range(at)]
    }

    pub(super) fn group_mut(&mut self, at: u32) -> &mut [T] {
        let range = self.range(at);
        &mut self.items[range]
    }

    pub(super) fn get(&self, at: u32) -> &T {
        &self.items[at as usize * self.width]
    }

    pub(super) fn get_mut(&mut self, at: u32) -> &mut T {
        &mut self.items[at as usize * self.width]
    }

    /// All items in no order, the free ones among them.
    pub(super) fn all_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Forgets all items and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.free.clear();
    }

    fn range(&self, at: u32) -> Range<usize> {
        let start = at as usize * self.width;
        start..start + self.width
    }
}

/// A copy has space for a few more items: it is made to be changed, and must not be copied again by the first change.
impl<T: Copy> Clone for Slab<T> {
    fn clone(&self) -> Self {
        let space = if self.items.is_empty() { 0 } else { self.width.max(self.items.len() / 16) };
        let mut items = Vec::with_capacity(self.items.len() + space);
        items.extend_from_slice(&self.items);
        Self { items, width: self.width, free: self.free.clone() }
    }
}
