//! The slices that the caller holds decoded, and the chunks of them that scans can use at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ChunkIndex, GroupIndex};
use crate::set::IndexSet;

/// The slices of a table that the caller holds decoded columns of.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodedSlices {
    /// The number of decoded columns of each slice.
    columns: BTreeMap<(ChunkIndex, GroupIndex), u32>,
}

impl DecodedSlices {
    /// Adds a decoded column. Returns true if it is the first of its slice.
    pub(crate) fn add(&mut self, chunk: ChunkIndex, group: GroupIndex) -> bool {
        let columns = self.columns.entry((chunk, group)).or_default();
        *columns += 1;
        *columns == 1
    }

    /// Removes a decoded column, if there is one. Returns true if it was the last of its slice.
    pub(crate) fn remove(&mut self, chunk: ChunkIndex, group: GroupIndex) -> bool {
        let Some(columns) = self.columns.get_mut(&(chunk, group)) else { return false };
        *columns -= 1;
        let was_last = *columns == 0;
        if was_last {
            self.columns.remove(&(chunk, group));
        }
        was_last
    }

    /// Removes a chunk.
    pub(crate) fn forget(&mut self, chunk: ChunkIndex) {
        while let Some((&slice, _)) = self.columns.range((chunk, GroupIndex(0))..).next()
            && slice.0 == chunk
        {
            self.columns.remove(&slice);
        }
    }

    /// The column groups of a chunk of which a column is decoded.
    pub(crate) fn groups_of(&self, chunk: ChunkIndex) -> impl Iterator<Item = GroupIndex> + '_ {
        let decoded = self.columns.range((chunk, GroupIndex(0))..=(chunk, GroupIndex(u32::MAX)));
        decoded.map(|(&(_, group), _)| group)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether a column of a slice is decoded.
    pub(crate) fn contains(&self, chunk: ChunkIndex, group: GroupIndex) -> bool {
        self.columns.contains_key(&(chunk, group))
    }

    /// The number of these column groups of a chunk that are decoded.
    pub(crate) fn groups(&self, chunk: ChunkIndex, groups: &IndexSet<GroupIndex>) -> usize {
        self.groups_of(chunk).filter(|&group| groups.contains(group)).count()
    }
}

/// The available chunks of a scan with decoded column groups that it reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodedChunks {
    groups: BTreeMap<ChunkIndex, usize>,
    by_groups: BTreeSet<(usize, Reverse<ChunkIndex>)>,
}

impl DecodedChunks {
    /// Sets the number of decoded column groups of a chunk.
    pub(crate) fn set(&mut self, chunk: ChunkIndex, groups: usize) {
        let before = match groups {
            0 => self.groups.remove(&chunk),
            _ => self.groups.insert(chunk, groups),
        };
        if let Some(before) = before {
            self.by_groups.remove(&(before, Reverse(chunk)));
        }
        if groups > 0 {
            self.by_groups.insert((groups, Reverse(chunk)));
        }
    }

    /// The number of decoded column groups of a chunk.
    pub(crate) fn of(&self, chunk: ChunkIndex) -> usize {
        self.groups.get(&chunk).copied().unwrap_or(0)
    }

    /// The largest number of decoded column groups of any chunk; 0 if none is decoded.
    pub(crate) fn most(&self) -> usize {
        self.by_groups.last().map_or(0, |&(groups, _)| groups)
    }

    /// The chunks with the largest number of decoded column groups, lowest index first.
    pub(crate) fn with_most(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let most = self.most();
        let chunks = self.by_groups.iter().rev().take_while(move |&&(groups, _)| groups == most);
        chunks.map(|&(_, Reverse(chunk))| chunk)
    }
}
