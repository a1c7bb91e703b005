//! The difference between two versions of a tree. Nodes that they share are passed over.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Entry, Node, Tree};

/// The entries of two trees in order of their keys, those with equal keys together, without the nodes that both have.
/// With a version and one made from it, this takes time by what changed in between.
pub(crate) fn diff<'a, E: Entry>(
    old: &'a Tree<E>,
    new: &'a Tree<E>,
) -> impl Iterator<Item = (Option<&'a E>, Option<&'a E>)> {
    let (mut old, mut new) = (Side::new(old), Side::new(new));
    std::iter::from_fn(move || {
        advance(&mut old, &mut new);
        let order = match (old.entries.first(), new.entries.first()) {
            (Some(one), Some(other)) => one.key().cmp(other.key()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let removed = order.is_le().then(|| old.take()).flatten();
        let added = order.is_ge().then(|| new.take()).flatten();
        Some((removed, added))
    })
}

/// The part of one tree that is still to be compared.
struct Side<'a, E: Entry> {
    /// The entries left of the leaf that is being compared.
    entries: &'a [E],
    /// Nodes after that leaf, the next one last, each with its level above the leaves.
    nodes: Vec<(usize, &'a Arc<Node<E>>)>,
}

impl<'a, E: Entry> Side<'a, E> {
    fn new(tree: &'a Tree<E>) -> Self {
        let level = tree.root.as_deref().map_or(0, Node::level);
        Self { entries: &[], nodes: tree.root.iter().map(|root| (level, root)).collect() }
    }

    fn take(&mut self) -> Option<&'a E> {
        let (first, rest) = self.entries.split_first()?;
        self.entries = rest;
        Some(first)
    }

    /// The level of the next node, if the leaf before it is done.
    fn level(&self) -> Option<usize> {
        self.entries.is_empty().then(|| self.nodes.last().map(|(level, _)| *level)).flatten()
    }

    /// Replaces the next node by what it consists of.
    fn open(&mut self) {
        match self.nodes.pop().map(|(level, node)| (level, &**node)) {
            Some((_, Node::Leaf(entries))) => self.entries = entries,
            Some((level, Node::Inner(children))) => {
                self.nodes.extend(children.iter().rev().map(|child| (level - 1, &child.node)));
            }
            None => {}
        }
    }
}

/// Goes on until both sides have an entry, or are at their end.
fn advance<E: Entry>(old: &mut Side<'_, E>, new: &mut Side<'_, E>) {
    loop {
        match (old.level(), new.level()) {
            (None, None) => return,
            (Some(_), None) => old.open(),
            (None, Some(_)) => new.open(),
            (Some(one), Some(other)) => {
                // Both are at the beginning of a node: here shared nodes meet, if their levels are equal.
                let shared = match (old.nodes.last(), new.nodes.last()) {
                    (Some((_, one)), Some((_, other))) => Arc::ptr_eq(one, other),
                    _ => false,
                };
                if shared {
                    old.nodes.pop();
                    new.nodes.pop();
                    continue;
                }
                if one >= other {
                    old.open();
                }
                if other >= one {
                    new.open();
                }
            }
        }
    }
}

impl<E: Entry> Node<E> {
    /// The number of levels below.
    fn level(&self) -> usize {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner(children) => children[0].node.level() + 1,
        }
    }
}
