//! Entries of a tree in order, from a border on.

use std::slice;

use super::{Child, Entry, Node, child_with};

/// Entries in order.
pub(crate) struct Iter<'a, E: Entry> {
    /// Children that are still to be visited, on each level above the leaf.
    levels: Vec<slice::Iter<'a, Child<E>>>,
    leaf: slice::Iter<'a, E>,
}

impl<'a, E: Entry> Iter<'a, E> {
    /// The entries under a node that are not `before` a border.
    pub(super) fn new(root: Option<&'a Node<E>>, before: impl Fn(&E::Key) -> bool) -> Self {
        let mut iter = Self { levels: Vec::new(), leaf: [].iter() };
        let mut next = root;
        while let Some(node) = next.take() {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|entry| before(entry.key()));
                    iter.leaf = entries[at..].iter();
                }
                Node::Inner(children) => {
                    let at = child_with(children, &before);
                    iter.levels.push(children[at + 1..].iter());
                    next = Some(&children[at].node);
                }
            }
        }
        iter
    }
}

impl<'a, E: Entry> Iterator for Iter<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        loop {
            if let Some(entry) = self.leaf.next() {
                return Some(entry);
            }
            match self.levels.last_mut()?.next().map(|child| &*child.node) {
                Some(Node::Leaf(entries)) => self.leaf = entries.iter(),
                Some(Node::Inner(children)) => self.levels.push(children.iter()),
                None => drop(self.levels.pop()),
            }
        }
    }
}
