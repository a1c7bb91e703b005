//! Entries of a layer, and nodes of them.

/// What a layer does at a position. Values are in tables beside the tree.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Change {
    /// A row that the layer below does not have.
    Insert(u32),
    #[default]
    Delete,
    Modify {
        column: u16,
        value: u32,
    },
}

/// A change and the position in the layer below: of the row that it changes, or before which it inserts one.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Entry {
    pub(super) sid: u64,
    pub(super) change: Change,
}

impl Entry {
    pub(super) fn is_insert(&self) -> bool {
        matches!(self.change, Change::Insert(_))
    }

    /// The position in the layer's own rows, given the delta of all entries before. That of a deleted row is the next
    /// row's.
    pub(super) fn rid(&self, delta: i64) -> u64 {
        self.sid.wrapping_add_signed(delta)
    }
}

/// An element of a node.
pub(super) trait Item: Copy + Default {
    fn first(&self) -> Entry;
    fn delta(&self) -> i64;
}

impl Item for Entry {
    fn first(&self) -> Entry {
        *self
    }

    fn delta(&self) -> i64 {
        delta_of(self.change)
    }
}

/// By how many rows a change shifts those after it.
pub(super) fn delta_of(change: Change) -> i64 {
    match change {
        Change::Insert(_) => 1,
        Change::Delete => -1,
        Change::Modify { .. } => 0,
    }
}

/// A node as its parent sees it.
#[derive(Clone, Copy, Default)]
pub(super) struct Child {
    pub(super) first: Entry,
    pub(super) delta: i64,
    pub(super) node: u32,
}

impl Item for Child {
    fn first(&self) -> Entry {
        self.first
    }

    fn delta(&self) -> i64 {
        self.delta
    }
}

/// Up to `N` entries, or children.
#[derive(Clone, Copy)]
pub(super) struct Node<T, const N: usize> {
    pub(super) len: u32,
    pub(super) items: [T; N],
}

impl<T: Item, const N: usize> Node<T, N> {
    pub(super) fn of(items: &[T]) -> Self {
        let mut node = Self { len: items.len() as u32, items: [T::default(); N] };
        node.items[..items.len()].copy_from_slice(items);
        node
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items[..self.len as usize]
    }

    /// Returns the right half if the node was full; if the item comes last, only that. So nodes that are filled in order
    /// are full.
    pub(super) fn insert(&mut self, at: usize, item: T) -> Option<Self> {
        let len = self.len as usize;
        if len < N {
            self.items.copy_within(at..len, at + 1);
            self.items[at] = item;
            self.len += 1;
            return None;
        }
        if at == N {
            return Some(Self::of(&[item]));
        }
        let cut = N / 2;
        let mut right = Self::of(&self.items[cut..]);
        self.len = cut as u32;
        let (half, at) = if at <= cut { (self, at) } else { (&mut right, at - cut) };
        half.insert(at, item);
        Some(right)
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.items.copy_within(at + 1..self.len as usize, at);
        self.len -= 1;
    }

    pub(super) fn child(&self, node: u32) -> Child {
        let delta = self.items().iter().map(Item::delta).sum();
        Child { first: self.items[0].first(), delta, node }
    }
}
