//! A counted B+ tree of changes by position: each inner node knows by how many rows each child shifts those after it.
//! So positions of both sides of a layer are found in logarithmic time.

use super::node::{Child, Entry, Item, Node};
use super::slab::Slab;

/// More levels than a tree of 2^32 entries can have that splits nodes in halves of at least four.
const LEVELS_MAX: usize = 24;

/// Entries in the order of their positions.
#[derive(Clone)]
pub(super) struct Tree<const N: usize> {
    leaves: Slab<Node<Entry, N>>,
    inners: Slab<Node<Child, N>>,
    root: u32,
    /// The number of levels above the leaves.
    height: usize,
    len: usize,
    delta: i64,
}

/// The place of an entry, or the end.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    /// The inner nodes on the way, and which child was taken.
    path: [(u32, u32); LEVELS_MAX],
    leaf: u32,
    slot: usize,
    /// The delta of all entries before.
    pub(super) delta: i64,
}

impl<const N: usize> Tree<N> {
    pub(super) fn new() -> Self {
        let (mut leaves, inners) = (Slab::new(1), Slab::new(1));
        let root = leaves.put(&[Node::of(&[])]);
        Self { leaves, inners, root, height: 0, len: 0, delta: 0 }
    }

    /// The tree without entries. Memory is kept.
    pub(super) fn clear(&mut self) {
        self.leaves.clear();
        self.inners.clear();
        self.root = self.leaves.put(&[Node::of(&[])]);
        (self.height, self.len, self.delta) = (0, 0, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// By how many rows all entries together shift those after them.
    pub(super) fn delta(&self) -> i64 {
        self.delta
    }

    /// The first entry that is not `before` a border, given the delta before each. Those before it are a prefix.
    pub(super) fn find(&self, before: impl Fn(&Entry, i64) -> bool) -> Cursor {
        let mut cursor = Cursor { path: [(0, 0); LEVELS_MAX], leaf: self.root, slot: 0, delta: 0 };
        for level in 0..self.height {
            let children = self.inners.get(cursor.leaf).items();
            let mut at = 0;
            while let Some(next) = children.get(at + 1) {
                let delta = cursor.delta + children[at].delta;
                if !before(&next.first, delta) {
                    break;
                }
                (at, cursor.delta) = (at + 1, delta);
            }
            cursor.path[level] = (cursor.leaf, at as u32);
            cursor.leaf = children[at].node;
        }
        let entries = self.leaves.get(cursor.leaf).items();
        while let Some(entry) = entries.get(cursor.slot)
            && before(entry, cursor.delta)
        {
            cursor.delta += entry.delta();
            cursor.slot += 1;
        }
        if cursor.slot == entries.len() {
            self.to_next_leaf(&mut cursor);
        }
        cursor
    }

    pub(super) fn entry(&self, cursor: &Cursor) -> Option<Entry> {
        self.leaf(cursor).get(cursor.slot).copied()
    }

    /// The entries of the leaf of a cursor from it on.
    pub(super) fn rest_of_leaf(&self, cursor: &Cursor) -> &[Entry] {
        &self.leaf(cursor)[cursor.slot..]
    }

    /// Goes to the next entry, or to the end.
    pub(super) fn to_next(&self, cursor: &mut Cursor) {
        let entries = self.leaf(cursor);
        cursor.delta += entries[cursor.slot].delta();
        cursor.slot += 1;
        if cursor.slot == entries.len() {
            self.to_next_leaf(cursor);
        }
    }

    fn leaf(&self, cursor: &Cursor) -> &[Entry] {
        self.leaves.get(cursor.leaf).items()
    }

    /// Goes to the first entry of the next leaf, if there is one. The delta is that of the end of this leaf already.
    pub(super) fn to_next_leaf(&self, cursor: &mut Cursor) -> bool {
        for level in (0..self.height).rev() {
            let (node, at) = cursor.path[level];
            let Some(next) = self.inners.get(node).items().get(at as usize + 1) else { continue };
            cursor.path[level].1 += 1;
            (cursor.leaf, cursor.slot) = (next.node, 0);
            for below in level + 1..self.height {
                cursor.path[below] = (cursor.leaf, 0);
                cursor.leaf = self.inners.get(cursor.leaf).items[0].node;
            }
            return true;
        }
        false
    }

    /// Puts an entry before that of a cursor.
    pub(super) fn insert(&mut self, cursor: &Cursor, entry: Entry) {
        self.len += 1;
        self.delta += entry.delta();
        let right = self.leaves.get_mut(cursor.leaf).insert(cursor.slot, entry);
        let mut right = right.map(|right| self.leaves.put(&[right]));
        for level in (0..self.height).rev() {
            let (node, at) = (cursor.path[level].0, cursor.path[level].1 as usize);
            let Some(split) = right.take() else {
                self.refresh(level, cursor, entry.delta());
                continue;
            };
            let left = self.inners.get(node).items[at].node;
            let (left, split) = (self.child(level + 1, left), self.child(level + 1, split));
            let inner = self.inners.get_mut(node);
            inner.items[at] = left;
            right = inner.insert(at + 1, split).map(|right| self.inners.put(&[right]));
        }
        if let Some(right) = right {
            let children = [self.child(0, self.root), self.child(0, right)];
            self.root = self.inners.put(&[Node::of(&children)]);
            self.height += 1;
        }
    }

    /// Removes the entry of a cursor. Only empty nodes are freed: nearly all entries stay until the layer is folded.
    pub(super) fn remove(&mut self, cursor: &Cursor) {
        let leaf = self.leaves.get_mut(cursor.leaf);
        let delta = -leaf.items[cursor.slot].delta();
        leaf.remove(cursor.slot);
        self.len -= 1;
        self.delta += delta;
        let mut is_empty = leaf.len == 0;
        for level in (0..self.height).rev() {
            if !is_empty {
                self.refresh(level, cursor, delta);
                continue;
            }
            let (node, at) = cursor.path[level];
            let inner = self.inners.get_mut(node);
            let child = inner.items[at as usize].node;
            inner.remove(at as usize);
            is_empty = inner.len == 0;
            if level + 1 == self.height { self.leaves.free(child) } else { self.inners.free(child) }
        }
        if is_empty {
            self.clear();
        }
        while self.height > 0 && self.inners.get(self.root).len == 1 {
            self.inners.free(self.root);
            self.root = self.inners.get(self.root).items[0].node;
            self.height -= 1;
        }
    }

    /// Puts an entry of the same position in place of that of a cursor.
    pub(super) fn replace(&mut self, cursor: &Cursor, entry: Entry) {
        let slot = &mut self.leaves.get_mut(cursor.leaf).items[cursor.slot];
        let delta = entry.delta() - slot.delta();
        *slot = entry;
        self.delta += delta;
        (0..self.height).rev().for_each(|level| self.refresh(level, cursor, delta));
    }

    /// Changes the positions of all entries, whose order stays the same. They come in no order.
    pub(super) fn try_shift<E>(
        &mut self,
        mut shift: impl FnMut(&mut Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        for leaf in self.leaves.all_mut() {
            // Free leaves are empty.
            leaf.items[..leaf.len as usize].iter_mut().try_for_each(&mut shift)?;
        }
        if self.height > 0 {
            self.refresh_firsts(0, self.root);
        }
        Ok(())
    }

    fn refresh_firsts(&mut self, level: usize, node: u32) {
        for at in 0..self.inners.get(node).len as usize {
            let child = self.inners.get(node).items[at].node;
            if level + 1 < self.height {
                self.refresh_firsts(level + 1, child);
            }
            self.inners.get_mut(node).items[at].first = self.first(level + 1, child);
        }
    }

    /// Makes the child of a level on the way to a cursor right again.
    fn refresh(&mut self, level: usize, cursor: &Cursor, delta: i64) {
        let (node, at) = (cursor.path[level].0, cursor.path[level].1 as usize);
        let first = self.first(level + 1, self.inners.get(node).items[at].node);
        let child = &mut self.inners.get_mut(node).items[at];
        (child.first, child.delta) = (first, child.delta + delta);
    }

    /// The first entry of a node of a level.
    fn first(&self, level: usize, node: u32) -> Entry {
        if level == self.height {
            self.leaves.get(node).items[0]
        } else {
            self.inners.get(node).items[0].first
        }
    }

    fn child(&self, level: usize, node: u32) -> Child {
        if level == self.height {
            self.leaves.get(node).child(node)
        } else {
            self.inners.get(node).child(node)
        }
    }
}
