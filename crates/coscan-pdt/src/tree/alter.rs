//! Changes of a tree: one way down that copies, and one way up that splits and merges.

use std::sync::Arc;

use super::{Child, Entry, NODE_MAX, Node, Tree, child_with};

impl<E: Entry> Tree<E> {
    /// Puts, changes or removes the entry of a key. `change` gets what is there and leaves what shall be there: an entry
    /// with that key, or none.
    pub(crate) fn alter<R>(&mut self, key: &E::Key, change: impl FnOnce(&mut Option<E>) -> R) -> R {
        let mut root = match self.root.take() {
            Some(root) => root,
            None => Arc::new(Node::Leaf(Vec::new())),
        };
        let node = Arc::make_mut(&mut root);
        let result = node.alter(key, change);
        if let Some(right) = node.split(key) {
            let left = std::mem::replace(node, Node::Leaf(Vec::new()));
            *node = Node::Inner(vec![Child::of(left), Child::of(right)]);
        }
        self.root = match node {
            Node::Inner(children) if children.len() == 1 => children.pop().map(|only| only.node),
            _ => (node.len() > 0).then_some(root),
        };
        result
    }

    /// Puts an entry in place of the one with its key, if there is one.
    pub(crate) fn put(&mut self, entry: E) {
        let key = entry.key().clone();
        self.alter(&key, |slot| *slot = Some(entry));
    }

    /// Removes the entry of a key, if there is one.
    pub(crate) fn remove(&mut self, key: &E::Key) {
        self.alter(key, |slot| *slot = None);
    }
}

impl<E: Entry> Node<E> {
    /// Afterwards the node may be empty, or longer by one than nodes may be.
    fn alter<R>(&mut self, key: &E::Key, change: impl FnOnce(&mut Option<E>) -> R) -> R {
        match self {
            Self::Leaf(entries) => alter_leaf(entries, key, change),
            Self::Inner(children) => {
                let at = child_with(children, |first| first <= key);
                let node = Arc::make_mut(&mut children[at].node);
                let result = node.alter(key, change);
                let right = node.split(key);
                settle(children, at, right);
                result
            }
        }
    }

    /// Takes off the right half if the node is too long after a change at `key`; if that was at its end, only the last
    /// part. So nodes that are filled in order are full, such as those of inserts by id.
    fn split(&mut self, key: &E::Key) -> Option<Self> {
        if self.len() <= NODE_MAX {
            return None;
        }
        let cut = |is_at_end: bool| if is_at_end { NODE_MAX } else { NODE_MAX / 2 };
        Some(match self {
            Self::Leaf(entries) => {
                let is_at_end = entries[NODE_MAX].key() == key;
                Self::Leaf(entries.split_off(cut(is_at_end)))
            }
            Self::Inner(children) => {
                let is_at_end = children[NODE_MAX].first <= *key;
                Self::Inner(children.split_off(cut(is_at_end)))
            }
        })
    }

    /// Appends the right neighbour, which is on the same level.
    fn append(&mut self, right: Self) {
        match (self, right) {
            (Self::Leaf(entries), Self::Leaf(more)) => entries.extend(more),
            (Self::Inner(children), Self::Inner(more)) => children.extend(more),
            _ => unreachable!("all leaves are on one level"),
        }
    }
}

fn alter_leaf<E: Entry, R>(
    entries: &mut Vec<E>,
    key: &E::Key,
    change: impl FnOnce(&mut Option<E>) -> R,
) -> R {
    let (at, mut slot) = match entries.binary_search_by(|entry| entry.key().cmp(key)) {
        Ok(at) => (at, Some(entries.remove(at))),
        Err(at) => (at, None),
    };
    let result = change(&mut slot);
    if let Some(entry) = slot {
        debug_assert!(entry.key() == key, "an entry stays where its key belongs");
        entries.insert(at, entry);
    }
    result
}

/// Makes a list of children right again after one of them was changed, and has perhaps a new right neighbour.
fn settle<E: Entry>(children: &mut Vec<Child<E>>, at: usize, right: Option<Node<E>>) {
    if children[at].node.len() == 0 {
        children.remove(at);
        return;
    }
    children[at].refresh();
    if let Some(right) = right {
        children.insert(at + 1, Child::of(right));
    } else if children[at].node.len() < NODE_MAX / 2 && children.len() > 1 {
        // Merged nodes are not full, so that the next change does not split them again.
        let left = at.min(children.len() - 2);
        if children[left].node.len() + children[left + 1].node.len() <= NODE_MAX * 3 / 4 {
            let right = Arc::unwrap_or_clone(children.remove(left + 1).node);
            Arc::make_mut(&mut children[left].node).append(right);
            children[left].refresh();
        }
    }
}

impl<E: Entry> Child<E> {
    /// Reads the first key and the sum again after the node was changed.
    fn refresh(&mut self) {
        self.sum = self.node.sum();
        let first = match &*self.node {
            Node::Leaf(entries) => entries[0].key(),
            Node::Inner(children) => &children[0].first,
        };
        if self.first != *first {
            self.first = first.clone();
        }
    }
}

/// A copy has space for one more entry: it is made to be changed.
impl<E: Entry> Clone for Node<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(entries) => Self::Leaf(with_space(entries)),
            Self::Inner(children) => Self::Inner(with_space(children)),
        }
    }
}

impl<E: Entry> Clone for Child<E> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), sum: self.sum, node: Arc::clone(&self.node) }
    }
}

fn with_space<T: Clone>(items: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(items.len() + 1);
    copy.extend_from_slice(items);
    copy
}
