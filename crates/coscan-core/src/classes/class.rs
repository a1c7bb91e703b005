//! A class: the properties that its chunks share, and the ends of their list.

use crate::ids::{ChunkIndex, ClassIndex, GroupIndex, ScanPosition};
use crate::set::IndexSet;

/// The properties that the chunks of a class share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ClassKey {
    /// Scans that still need the chunk.
    pub scans: IndexSet<ScanPosition>,
    /// Column groups with a page that is neither in the pool nor being read.
    pub cold: IndexSet<GroupIndex>,
    /// The cold column groups whose cold pages are all in the pool of another server.
    pub nearby: IndexSet<GroupIndex>,
    /// Column groups with a page that is being read.
    pub reading: IndexSet<GroupIndex>,
    /// Column groups with a page in the pool.
    pub cached: IndexSet<GroupIndex>,
}

impl ClassKey {
    /// Whether all pages of these column groups are in the pool or being read.
    #[must_use]
    pub fn covers(&self, groups: &IndexSet<GroupIndex>) -> bool {
        !self.cold.intersects(groups)
    }

    /// Whether pages of these column groups are neither in the pool nor being read, and all of them in the pool of another
    /// server.
    #[must_use]
    pub fn is_nearby(&self, groups: &IndexSet<GroupIndex>) -> bool {
        if self.nearby.is_empty() {
            return false;
        }
        let cold = self.cold.intersection(groups);
        !cold.is_empty() && cold.intersection_len(&self.nearby) == cold.len()
    }

    /// Whether all pages of these column groups are in the pool.
    #[must_use]
    pub fn has(&self, groups: &IndexSet<GroupIndex>) -> bool {
        self.covers(groups) && !self.reading.intersects(groups)
    }
}

/// A class of chunks, the one that joined first in front.
#[derive(Clone, Debug)]
pub struct Class {
    pub(super) index: ClassIndex,
    pub(super) key: ClassKey,
    /// Column groups that any of its scans reads.
    pub(super) needed_groups: IndexSet<GroupIndex>,
    pub(super) len: usize,
    pub(super) first: ChunkIndex,
    pub(super) last: ChunkIndex,
}

impl Class {
    /// Its index, which is given to another class once this one is empty.
    #[must_use]
    pub fn index(&self) -> ClassIndex {
        self.index
    }

    /// The properties of its chunks.
    #[must_use]
    pub fn key(&self) -> &ClassKey {
        &self.key
    }

    /// The number of its chunks.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a class without chunks does not exist")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The chunk that joined first.
    #[must_use]
    pub fn first(&self) -> ChunkIndex {
        self.first
    }

    /// Column groups that any of its scans reads.
    #[must_use]
    pub fn needed_groups(&self) -> &IndexSet<GroupIndex> {
        &self.needed_groups
    }

    pub(super) fn rank(&self) -> (usize, ClassIndex) {
        (self.key.scans.len(), self.index)
    }
}
