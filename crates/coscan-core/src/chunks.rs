//! The chunks of a table: their rows, and the pages that hold them. They are added and removed while scans run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::{ChunkIndex, GroupIndex, Index, PageId};

/// A chunk to be added to a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChunkSpec {
    /// The number of rows, at least one.
    pub rows: u64,
    /// The pages that hold those rows, for each column group of the table; none if nothing has to be read for them.
    /// Several chunks may share a page, also across tables, but a chunk lists it once.
    pub slices: Vec<Vec<PageId>>,
}

/// The chunks of a table, by their index. The index of a removed chunk is given to a new one.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    group_count: usize,
    /// The rows of each chunk; 0 where there is no chunk.
    rows: Vec<u64>,
    row_count: u64,
    free: BTreeSet<ChunkIndex>,
    /// Pages of all chunks, those of one chunk together, slice by slice; among them those of removed chunks.
    pages: Vec<PageId>,
    /// The start of the pages of each chunk.
    starts: Vec<u32>,
    /// The end of the pages of each slice, at `chunk * group_count + group`.
    ends: Vec<u32>,
    /// The number of `pages` that belong to removed chunks.
    removed: usize,
    /// Slices and pages that compaction has walked over.
    #[cfg(test)]
    walked: usize,
}

impl Chunks {
    pub(crate) fn new(group_count: usize) -> Self {
        Self {
            group_count,
            rows: Vec::new(),
            row_count: 0,
            free: BTreeSet::new(),
            pages: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            removed: 0,
            #[cfg(test)]
            walked: 0,
        }
    }

    /// Bytes of memory for a chunk.
    pub(crate) fn memory_bytes_for(chunk: &ChunkSpec) -> usize {
        let pages: usize = chunk.slices.iter().map(|slice| size_of_val(slice.as_slice())).sum();
        // An entry in `rows` and in `starts`, and one in `ends` for each slice.
        size_of::<u64>() + size_of::<u32>() + chunk.slices.len() * size_of::<u32>() + pages
    }

    /// Adds a chunk at the lowest free index.
    pub(crate) fn add(&mut self, chunk: &ChunkSpec) -> ChunkIndex {
        let index = self.free.pop_first().unwrap_or(ChunkIndex::from_usize(self.rows.len()));
        let position = index.as_usize();
        if position == self.rows.len() {
            self.rows.push(0);
            self.starts.push(0);
            self.ends.resize(self.rows.len() * self.group_count, 0);
        }
        self.rows[position] = chunk.rows;
        self.row_count += chunk.rows;
        self.starts[position] = self.end();
        for (group, slice) in chunk.slices.iter().enumerate() {
            self.pages.extend(slice);
            self.ends[position * self.group_count + group] = self.end();
        }
        index
    }

    /// Removes a chunk.
    pub(crate) fn remove(&mut self, chunk: ChunkIndex) {
        let position = chunk.as_usize();
        self.removed += self.all_pages(chunk).len();
        self.row_count -= std::mem::take(&mut self.rows[position]);
        self.free.insert(chunk);
        self.truncate();
        let slices = self.rows.len() * self.group_count;
        if self.removed > self.pages.len() / 2 && self.removed >= slices / 2 {
            self.compact();
        }
    }

    /// Drops the free indexes behind the last chunk.
    fn truncate(&mut self) {
        while self.rows.last() == Some(&0) {
            self.rows.pop();
            self.free.pop_last();
        }
        self.starts.truncate(self.rows.len());
        self.ends.truncate(self.rows.len() * self.group_count);
    }

    /// Drops the pages of removed chunks: in constant time for each of them, since they are half of all, and at least half
    /// as many as there are slices to walk over.
    fn compact(&mut self) {
        let before = std::mem::take(&mut self.pages);
        self.removed = 0;
        #[cfg(test)]
        {
            self.walked += before.len() + self.ends.len();
        }
        for position in 0..self.rows.len() {
            let end = self.end();
            let mut start = std::mem::replace(&mut self.starts[position], end) as usize;
            for group in 0..self.group_count {
                let slice = position * self.group_count + group;
                let end = self.ends[slice] as usize;
                if self.rows[position] > 0 {
                    self.pages.extend(&before[start..end]);
                }
                self.ends[slice] = self.end();
                start = end;
            }
        }
    }

    fn end(&self) -> u32 {
        u32::try_from(self.pages.len()).expect("fewer than 2^32 pages in all slices of a table")
    }

    fn all_pages(&self, chunk: ChunkIndex) -> &[PageId] {
        let last = chunk.as_usize() * self.group_count + self.group_count;
        let start = self.starts[chunk.as_usize()];
        let end = if self.group_count == 0 { start } else { self.ends[last - 1] };
        &self.pages[start as usize..end as usize]
    }

    pub(crate) fn slice(&self, chunk: ChunkIndex, group: GroupIndex) -> &[PageId] {
        let position = chunk.as_usize() * self.group_count + group.as_usize();
        let start = match group.as_usize() {
            0 => self.starts[chunk.as_usize()],
            _ => self.ends[position - 1],
        };
        &self.pages[start as usize..self.ends[position] as usize]
    }

    pub(crate) fn group_count(&self) -> usize {
        self.group_count
    }

    /// The number of chunks.
    pub(crate) fn count(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// The bound above all indexes.
    pub(crate) fn index_end(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn contains(&self, chunk: ChunkIndex) -> bool {
        self.rows.get(chunk.as_usize()).is_some_and(|&rows| rows > 0)
    }

    /// The rows of a chunk.
    pub(crate) fn rows(&self, chunk: ChunkIndex) -> u64 {
        self.rows[chunk.as_usize()]
    }

    /// The rows of all chunks.
    pub(crate) fn row_count(&self) -> u64 {
        self.row_count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        (0..self.rows.len()).map(ChunkIndex::from_usize).filter(|&chunk| self.contains(chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(rows: u64, slices: &[&[u32]]) -> ChunkSpec {
        let slices = slices.iter().map(|pages| pages.iter().copied().map(PageId).collect());
        ChunkSpec { rows, slices: slices.collect() }
    }

    fn slices(chunks: &Chunks) -> Vec<(u32, Vec<Vec<u32>>)> {
        let slice = |chunk, group| chunks.slice(chunk, GroupIndex(group)).iter().map(|p| p.0);
        let of = |chunk| (0..2).map(|group| slice(chunk, group).collect()).collect();
        chunks.iter().map(|chunk| (chunk.0, of(chunk))).collect()
    }

    #[test]
    fn removed_chunks_leave_their_index_and_no_pages() {
        let mut chunks = Chunks::new(2);
        chunks.add(&chunk(10, &[&[0, 1], &[2]]));
        chunks.add(&chunk(20, &[&[], &[2, 3]]));
        chunks.add(&chunk(30, &[&[4], &[]]));
        assert_eq!((chunks.count(), chunks.row_count()), (3, 60));
        chunks.remove(ChunkIndex(0));
        chunks.remove(ChunkIndex(1));
        assert!(chunks.pages.len() < 3, "their pages are dropped");
        assert_eq!(slices(&chunks), [(2, vec![vec![4], vec![]])]);
        assert_eq!(chunks.add(&chunk(5, &[&[7], &[8, 9]])), ChunkIndex(0));
        assert_eq!((chunks.count(), chunks.index_end(), chunks.row_count()), (2, 3, 35));
        assert_eq!(slices(&chunks), [(0, vec![vec![7], vec![8, 9]]), (2, vec![vec![4], vec![]])]);
    }

    /// Chunks of one page in each of two column groups.
    fn full(count: u32) -> Chunks {
        let mut chunks = Chunks::new(2);
        (0..count).for_each(|page| {
            chunks.add(&chunk(1, &[&[page], &[page]]));
        });
        chunks
    }

    #[test]
    fn a_table_is_emptied_in_constant_time_for_each_chunk() {
        for reversed in [false, true] {
            let mut chunks = full(10_000);
            for index in 0..10_000 {
                chunks.remove(ChunkIndex(if reversed { 9_999 - index } else { index }));
            }
            assert!(chunks.walked <= 10 * 10_000, "{} steps", chunks.walked);
            assert_eq!((chunks.index_end(), chunks.pages.len(), chunks.ends.len()), (0, 0, 0));
            assert_eq!(chunks.add(&chunk(1, &[&[0], &[0]])), ChunkIndex(0));
        }
    }

    #[test]
    fn what_a_table_has_shrunk_from_does_not_make_refreshes_slow() {
        let mut chunks = full(10_000);
        (0..9_990).for_each(|index| chunks.remove(ChunkIndex(index)));
        chunks.walked = 0;
        for _ in 0..10_000 {
            let added = chunks.add(&chunk(1, &[&[0], &[0]]));
            assert_eq!(added, ChunkIndex(0), "the lowest free index");
            chunks.remove(added);
        }
        assert!(chunks.walked <= 10 * 10_000, "{} steps", chunks.walked);
        assert_eq!(slices(&chunks).first(), Some(&(9_990, vec![vec![9_990], vec![9_990]])));
        let pages = chunks.pages.len();
        assert!(pages <= 2 * 10_000, "{pages} pages of ten chunks are kept");
    }
}
