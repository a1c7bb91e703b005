//! A sorted sequence as a persistent B+ tree with sums.
//!
//! Versions share nodes: a clone costs a counter, and a change copies the nodes from the root to one leaf, unless no
//! other version has them. Each inner node knows the sums of its children, so that positions are found without a walk.

mod alter;
mod diff;
mod iter;

pub(crate) use diff::diff;
pub(crate) use iter::Iter;

use std::ops::AddAssign;
use std::sync::Arc;

/// The most entries of a leaf, and children of an inner node. Tests have small nodes, for trees of many levels.
const NODE_MAX: usize = if cfg!(test) { 4 } else { 32 };

/// An element of a tree.
pub(crate) trait Entry: Clone {
    /// Entries are in ascending order of their keys, each key once.
    type Key: Ord + Clone;
    /// The numbers that are added up over entries.
    type Sum: Copy + Default + AddAssign;

    fn key(&self) -> &Self::Key;
    fn sum(&self) -> Self::Sum;
}

/// A sorted sequence of entries.
#[derive(Clone)]
pub(crate) struct Tree<E: Entry> {
    /// `None` if there are no entries: no node is empty.
    root: Option<Arc<Node<E>>>,
}

enum Node<E: Entry> {
    Leaf(Vec<E>),
    Inner(Vec<Child<E>>),
}

/// A node as its parent sees it. The first key and the sum are here, so that a search visits no node beside its way.
struct Child<E: Entry> {
    first: E::Key,
    sum: E::Sum,
    node: Arc<Node<E>>,
}

impl<E: Entry> Tree<E> {
    /// A tree of entries that are sorted already.
    pub(crate) fn from_sorted(entries: impl IntoIterator<Item = E>) -> Self {
        let mut leaves = groups(entries).map(Node::Leaf);
        let Some(first) = leaves.next() else { return Self::default() };
        let mut level: Vec<_> = std::iter::once(first).chain(leaves).map(Child::of).collect();
        while level.len() > 1 {
            level = groups(level).map(Node::Inner).map(Child::of).collect();
        }
        Self { root: level.pop().map(|child| child.node) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The sum of all entries.
    pub(crate) fn sum(&self) -> E::Sum {
        self.root.as_ref().map_or_else(E::Sum::default, |root| root.sum())
    }

    pub(crate) fn get(&self, key: &E::Key) -> Option<&E> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|entry| entry.key().cmp(key)).ok()?;
                    return entries.get(at);
                }
                Node::Inner(children) => node = &children[child_with(children, |k| k <= key)].node,
            }
        }
    }

    /// The sum of the entries that are `before` a border. They are a prefix of the sequence.
    pub(crate) fn sum_before(&self, before: impl Fn(&E::Key) -> bool) -> E::Sum {
        let mut sum = E::Sum::default();
        let mut next = self.root.as_deref();
        while let Some(node) = next.take() {
            match node {
                Node::Leaf(entries) => {
                    entries.iter().take_while(|one| before(one.key())).for_each(|e| sum += e.sum());
                }
                Node::Inner(children) => {
                    let at = child_with(children, &before);
                    children[..at].iter().for_each(|child| sum += child.sum);
                    next = Some(&children[at].node);
                }
            }
        }
        sum
    }

    /// The last entry that `reached` holds for, given its key and the sum before it, with that sum. The entries that it
    /// holds for are a prefix of the sequence.
    pub(crate) fn last_reached(
        &self,
        reached: impl Fn(&E::Key, E::Sum) -> bool,
    ) -> Option<(E::Sum, &E)> {
        let mut before = E::Sum::default();
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let sums = entries.iter().map(Entry::sum);
                    let keys = entries.iter().map(Entry::key);
                    let (at, sum) = last(keys.zip(sums), before, &reached)?;
                    return Some((sum, &entries[at]));
                }
                Node::Inner(children) => {
                    let parts = children.iter().map(|child| (&child.first, child.sum));
                    let (at, sum) = last(parts, before, &reached)?;
                    (before, node) = (sum, &children[at].node);
                }
            }
        }
    }

    /// All entries, in order.
    pub(crate) fn iter(&self) -> Iter<'_, E> {
        self.iter_after(|_| false)
    }

    /// The entries that are not `before` a border, in order. Those before it are a prefix of the sequence.
    pub(crate) fn iter_after(&self, before: impl Fn(&E::Key) -> bool) -> Iter<'_, E> {
        Iter::new(self.root.as_deref(), before)
    }

    /// Whether two trees are the same nodes, and so equal. Equal trees need not be the same nodes.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl<E: Entry> Default for Tree<E> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<E: Entry> Node<E> {
    fn sum(&self) -> E::Sum {
        let mut sum = E::Sum::default();
        match self {
            Self::Leaf(entries) => entries.iter().for_each(|entry| sum += entry.sum()),
            Self::Inner(children) => children.iter().for_each(|child| sum += child.sum),
        }
        sum
    }

    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }
}

impl<E: Entry> Child<E> {
    fn of(node: Node<E>) -> Self {
        let first = match &node {
            Node::Leaf(entries) => entries[0].key().clone(),
            Node::Inner(children) => children[0].first.clone(),
        };
        Self { first, sum: node.sum(), node: Arc::new(node) }
    }
}

/// The child in which a border lies: the last that begins before it, or else the first.
fn child_with<E: Entry>(children: &[Child<E>], before: impl Fn(&E::Key) -> bool) -> usize {
    children.partition_point(|child| before(&child.first)).saturating_sub(1)
}

/// The last of some parts that `reached` holds for, and the sum before it.
fn last<'a, K: 'a, S: Copy + AddAssign>(
    parts: impl Iterator<Item = (&'a K, S)>,
    mut before: S,
    reached: impl Fn(&K, S) -> bool,
) -> Option<(usize, S)> {
    let mut found = None;
    for (at, (key, sum)) in parts.enumerate() {
        if !reached(key, before) {
            break;
        }
        found = Some((at, before));
        before += sum;
    }
    found
}

/// Items in groups that are as large as nodes may be.
fn groups<T>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let group: Vec<T> = items.by_ref().take(NODE_MAX).collect();
        (!group.is_empty()).then_some(group)
    })
}

#[cfg(test)]
mod tests;
