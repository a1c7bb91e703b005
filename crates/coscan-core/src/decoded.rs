//! What the caller holds decoded now, and which of it scans can use at once.

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
    /// Counts one column more; true if it is the first of its slice.
    pub(crate) fn add(&mut self, chunk: ChunkIndex, group: GroupIndex) -> bool {
        let columns = self.columns.entry((chunk, group)).or_default();
        *columns += 1;
        *columns == 1
    }

    /// Counts one column less, if there is one; true if it was the last of its slice.
    pub(crate) fn remove(&mut self, chunk: ChunkIndex, group: GroupIndex) -> bool {
        let Some(columns) = self.columns.get_mut(&(chunk, group)) else { return false };
        *columns -= 1;
        let is_gone = *columns == 0;
        if is_gone {
            self.columns.remove(&(chunk, group));
        }
        is_gone
    }

    /// Forgets a chunk.
    pub(crate) fn forget(&mut self, chunk: ChunkIndex) {
        while let Some((&slice, _)) = self.columns.range((chunk, GroupIndex(0))..).next()
            && slice.0 == chunk
        {
            self.columns.remove(&slice);
        }
    }

    /// How many of some column groups of a chunk are decoded.
    pub(crate) fn groups(&self, chunk: ChunkIndex, groups: &IndexSet<GroupIndex>) -> usize {
        let decoded = self.columns.range((chunk, GroupIndex(0))..=(chunk, GroupIndex(u32::MAX)));
        decoded.filter(|((_, group), _)| groups.contains(*group)).count()
    }
}

/// Chunks that are there for a scan and of which some column groups that it reads are decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodedChunks {
    groups: BTreeMap<ChunkIndex, usize>,
    by_groups: BTreeSet<(usize, Reverse<ChunkIndex>)>,
}

impl DecodedChunks {
    /// So many column groups of a chunk are decoded.
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

    /// How many column groups of a chunk are decoded.
    pub(crate) fn of(&self, chunk: ChunkIndex) -> usize {
        self.groups.get(&chunk).copied().unwrap_or(0)
    }

    /// The number of decoded column groups of the chunk that has most of them; 0 if none is.
    pub(crate) fn most(&self) -> usize {
        self.by_groups.last().map_or(0, |&(groups, _)| groups)
    }

    /// The chunks with that number, lowest index first.
    pub(crate) fn with_most(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        let most = self.most();
        let chunks = self.by_groups.iter().rev().take_while(move |&&(groups, _)| groups == most);
        chunks.map(|&(_, Reverse(chunk))| chunk)
    }
}
