//! Sets of indexes as bits: membership in one test, iteration in order, a count that is always known.

mod hierarchical;

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use crate::ids::Index;

pub use hierarchical::HierarchicalBitSet;

/// A set of indexes below a bound that grows as needed.
#[derive(Clone)]
pub struct IndexSet<T> {
    words: Vec<u64>,
    len: usize,
    index: PhantomData<T>,
}

impl<T> Default for IndexSet<T> {
    fn default() -> Self {
        Self { words: Vec::new(), len: 0, index: PhantomData }
    }
}

impl<T: Index> IndexSet<T> {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `index` is a member.
    #[must_use]
    pub fn contains(&self, index: T) -> bool {
        let position = index.as_usize();
        self.words.get(position / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Adds `index`. Returns false if it was a member already.
    pub fn insert(&mut self, index: T) -> bool {
        let position = index.as_usize();
        if position / 64 >= self.words.len() {
            self.words.resize(position / 64 + 1, 0);
        }
        let word = &mut self.words[position / 64];
        let added = *word >> (position % 64) & 1 == 0;
        *word |= 1 << (position % 64);
        self.len += usize::from(added);
        added
    }

    /// Removes `index`. Returns false if it was not a member.
    pub fn remove(&mut self, index: T) -> bool {
        let removed = self.contains(index);
        if removed {
            self.words[index.as_usize() / 64] &= !(1 << (index.as_usize() % 64));
            self.len -= 1;
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
    pub fn iter(&self) -> impl Iterator<Item = T> + Clone + '_ {
        self.iter_from(T::from_usize(0))
    }

    /// The members from `start` on, smallest first.
    pub fn iter_from(&self, start: T) -> impl Iterator<Item = T> + Clone + '_ {
        let words = start.as_usize() / 64..self.words.len();
        words.flat_map(move |word| self.members_of(word, start))
    }

    /// The members in a word, from `start` on if `start` lies in it.
    fn members_of(&self, word: usize, start: T) -> impl Iterator<Item = T> + Clone + use<T> {
        let start = start.as_usize();
        let mask = if word == start / 64 { u64::MAX << (start % 64) } else { u64::MAX };
        members_of(self.words[word] & mask, word)
    }

    /// The members from `start` on, then those before it.
    pub fn iter_around(&self, start: T) -> impl Iterator<Item = T> + Clone + '_ {
        self.iter_from(start).chain(self.iter().take_while(move |&index| index < start))
    }

    /// Whether the two sets share a member.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The number of members that both sets have.
    #[must_use]
    pub fn intersection_len(&self, other: &Self) -> usize {
        self.words.iter().zip(&other.words).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    /// The members that all of these sets have, smallest first.
    pub fn common<'a, const SETS: usize>(sets: [&'a Self; SETS]) -> impl Iterator<Item = T> + 'a {
        let words = sets.iter().map(|set| set.words.len()).min().unwrap_or(0);
        (0..words).flat_map(move |word| {
            let bits = sets.iter().fold(u64::MAX, |bits, set| bits & set.words[word]);
            members_of(bits, word)
        })
    }

    /// The members that both sets have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let words: Vec<_> = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        let mut shared = Self { words, len: 0, index: PhantomData };
        shared.recount();
        shared
    }

    /// Adds all members of `other`.
    pub fn union_with(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, added) in self.words.iter_mut().zip(&other.words) {
            *word |= added;
        }
        self.recount();
    }

    /// Removes all members of `other`.
    pub fn subtract(&mut self, other: &Self) {
        for (word, removed) in self.words.iter_mut().zip(&other.words) {
            *word &= !removed;
        }
        self.recount();
    }

    /// Bytes of memory for its members.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    fn recount(&mut self) {
        self.len = self.words.iter().map(|word| word.count_ones() as usize).sum();
    }

    /// Its words up to the last one with a member.
    fn filled_words(&self) -> &[u64] {
        let end = self.words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        &self.words[..end]
    }
}

/// The members that these bits of a word stand for.
fn members_of<T: Index>(mut bits: u64, word: usize) -> impl Iterator<Item = T> + Clone + use<T> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(T::from_usize(word * 64 + bit))
    })
}

/// Two sets are equal if their members are, whatever the length of their words.
impl<T: Index> PartialEq for IndexSet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.filled_words() == other.filled_words()
    }
}

impl<T: Index> Eq for IndexSet<T> {}

/// Some fixed order, so that sets can be keys.
impl<T: Index> Ord for IndexSet<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.filled_words().cmp(other.filled_words())
    }
}

impl<T: Index> PartialOrd for IndexSet<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Index> FromIterator<T> for IndexSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(indexes: I) -> Self {
        let mut set = Self::new();
        for index in indexes {
            set.insert(index);
        }
        set
    }
}

impl<T: Index> fmt::Debug for IndexSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::ids::ChunkIndex;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(
            changes in prop::collection::vec((any::<bool>(), 0u32..200), 0..100),
            other in prop::collection::btree_set(0u32..200, 0..20),
            start in 0u32..220,
        ) {
            let mut set = IndexSet::new();
            let mut model = BTreeSet::new();
            for (insert, value) in changes {
                let index = ChunkIndex(value);
                let (changed, expected) =
                    if insert { (set.insert(index), model.insert(value)) } else { (set.remove(index), model.remove(&value)) };
                prop_assert_eq!(changed, expected);
            }
            prop_assert_eq!(set.len(), model.len());
            prop_assert!(set.iter().map(|c| c.0).eq(model.iter().copied()));
            let around = model.range(start..).chain(model.range(..start));
            prop_assert!(set.iter_around(ChunkIndex(start)).map(|c| c.0).eq(around.copied()));
            let other_set: IndexSet<_> = other.iter().copied().map(ChunkIndex).collect();
            prop_assert_eq!(set.intersects(&other_set), !model.is_disjoint(&other));
            prop_assert_eq!(set.intersection_len(&other_set), model.intersection(&other).count());
            let same: IndexSet<_> = model.iter().copied().map(ChunkIndex).collect();
            prop_assert_eq!(&set, &same);
            prop_assert_eq!(set == other_set, model == other);
            let common = IndexSet::common([&set, &other_set]);
            prop_assert!(common.map(|c| c.0).eq(model.intersection(&other).copied()));
            let mut rest = set.clone();
            rest.subtract(&other_set);
            prop_assert!(rest.iter().map(|c| c.0).eq(model.difference(&other).copied()));
            prop_assert_eq!(rest.len(), model.difference(&other).count());
            set.union_with(&other_set);
            prop_assert!(set.iter().map(|c| c.0).eq(model.union(&other).copied()));
            prop_assert_eq!(set.len(), model.union(&other).count());
        }
    }
}
