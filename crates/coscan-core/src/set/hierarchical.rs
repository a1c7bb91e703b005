//! A set over a long range of indexes, where the next member may be far away.

use std::fmt;

use super::IndexSet;
use crate::ids::Index;

/// An [`IndexSet`] with a second set of the words that hold a member. The next member is found without a walk over the
/// empty words between, also in a table of a million chunks.
#[derive(Clone)]
pub struct HierarchicalBitSet<T> {
    members: IndexSet<T>,
    /// Words of `members` that are not 0.
    filled: IndexSet<usize>,
    /// Members that iterators have returned.
    #[cfg(test)]
    visited: std::cell::Cell<usize>,
}

impl<T> Default for HierarchicalBitSet<T> {
    fn default() -> Self {
        Self {
            members: IndexSet::default(),
            filled: IndexSet::default(),
            #[cfg(test)]
            visited: std::cell::Cell::default(),
        }
    }
}

impl<T: Index> HierarchicalBitSet<T> {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether `index` is a member.
    #[must_use]
    pub fn contains(&self, index: T) -> bool {
        self.members.contains(index)
    }

    /// Adds `index`. Returns false if it was a member already.
    pub fn insert(&mut self, index: T) -> bool {
        self.filled.insert(index.as_usize() / 64);
        self.members.insert(index)
    }

    /// Removes `index`. Returns false if it was not a member.
    pub fn remove(&mut self, index: T) -> bool {
        let removed = self.members.remove(index);
        let word = index.as_usize() / 64;
        if removed && self.members.words[word] == 0 {
            self.filled.remove(word);
        }
        removed
    }

    /// Makes `index` a member, or not.
    pub fn set(&mut self, index: T, member: bool) {
        if member {
            self.insert(index);
        } else {
            self.remove(index);
        }
    }

    /// The smallest member.
    #[must_use]
    pub fn first(&self) -> Option<T> {
        self.iter().next()
    }

    /// All members, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.iter_from(T::from_usize(0))
    }

    /// The members from `start` on, smallest first.
    pub fn iter_from(&self, start: T) -> impl Iterator<Item = T> + '_ {
        let words = self.filled.iter_from(start.as_usize() / 64);
        let members = words.flat_map(move |word| self.members.members_of(word, start));
        #[cfg(test)]
        let members = members.inspect(|_| self.visited.set(self.visited.get() + 1));
        members
    }

    /// The members that iterators have returned since the last call.
    #[cfg(test)]
    pub(crate) fn take_visited(&self) -> usize {
        self.visited.take()
    }

    /// The members from `start` on, then those before it.
    pub fn iter_around(&self, start: T) -> impl Iterator<Item = T> + '_ {
        self.iter_from(start).chain(self.iter().take_while(move |&index| index < start))
    }

    /// Bytes of memory for its members.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.members.memory_bytes() + self.filled.memory_bytes()
    }
}

impl<T: Index> fmt::Debug for HierarchicalBitSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.members.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::HierarchicalBitSet;
    use crate::ids::ChunkIndex;

    proptest! {
        #[test]
        fn it_is_a_set(
            changes in prop::collection::vec((any::<bool>(), 0u32..9_000), 0..200),
            start in 0u32..9_100,
        ) {
            let mut set = HierarchicalBitSet::new();
            let mut model = BTreeSet::new();
            for (insert, value) in changes {
                let index = ChunkIndex(value);
                let (changed, expected) =
                    if insert { (set.insert(index), model.insert(value)) } else { (set.remove(index), model.remove(&value)) };
                prop_assert_eq!(changed, expected);
            }
            prop_assert_eq!(set.len(), model.len());
            let around = model.range(start..).chain(model.range(..start));
            prop_assert!(set.iter_around(ChunkIndex(start)).map(|c| c.0).eq(around.copied()));
            prop_assert!(set.filled.iter().eq(model.iter().map(|v| *v as usize / 64).collect::<BTreeSet<_>>()));
        }
    }
}
