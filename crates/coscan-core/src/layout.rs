//! The layout of a table: chunks of rows, column groups, and the pages of each.
//!
//! ```text
//!            group 0        group 1
//! chunk 0    page 0         page 3     a slice is the list of pages that one
//! chunk 1    page 1         page 3     group of one chunk needs; page 3 serves
//! chunk 2    page 2         page 4     two neighbouring chunks
//! ```
//!
//! One column per group is a column layout (DSM); all columns in one group is a row layout (NSM, PAX).
//!
//! A layout describes a fixed table with pages of its own:
//! [`register_layout`](crate::ActiveBufferManager::register_layout) adds both at once.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::chunks::ChunkSpec;
use crate::ids::{ChunkIndex, GroupIndex, Index, PageId, PageIndex};

/// The fixed shape of a table: its chunks, column groups and pages, and how many bytes each page takes as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    group_count: usize,
    /// First row of each chunk, and after the last one the number of rows of the table.
    row_starts: Vec<u64>,
    pages: Vec<Page>,
    /// Pages of slice (chunk, group), at `chunk * group_count + group`.
    slices: Lists<PageIndex>,
    /// Chunks that each page serves.
    chunks_of_page: Lists<ChunkIndex>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    group: GroupIndex,
    bytes: u64,
}

impl Layout {
    /// Starts an empty table with this number of column groups.
    #[must_use]
    pub fn builder(group_count: usize) -> LayoutBuilder {
        LayoutBuilder { group_count, row_starts: vec![0], pages: Vec::new(), slices: Vec::new() }
    }

    /// The number of column groups.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.group_count
    }

    /// The number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// The number of pages.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.row_starts[self.chunk_count()]
    }

    /// All chunks, first rows first.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = ChunkIndex> + use<> {
        (0..self.chunk_count()).map(ChunkIndex::from_usize)
    }

    /// The rows of a chunk, counted from the start of the table.
    #[must_use]
    pub fn rows(&self, chunk: ChunkIndex) -> Range<u64> {
        self.row_starts[chunk.as_usize()]..self.row_starts[chunk.as_usize() + 1]
    }

    /// The chunks that hold any of these rows.
    pub fn chunks_in(&self, rows: Range<u64>) -> impl Iterator<Item = ChunkIndex> + use<> {
        let first = self.row_starts.partition_point(|&start| start <= rows.start).max(1) - 1;
        let end = self.row_starts.partition_point(|&start| start < rows.end).max(first);
        let end = if rows.is_empty() { first } else { end.min(self.chunk_count()) };
        (first..end).map(ChunkIndex::from_usize)
    }

    /// The chunks that hold any of these rows, as runs of neighbours.
    #[must_use]
    pub fn chunk_ranges(&self, rows: &[Range<u64>]) -> Vec<Range<ChunkIndex>> {
        let mut ranges: Vec<Range<ChunkIndex>> = Vec::new();
        for chunk in rows.iter().flat_map(|rows| self.chunks_in(rows.clone())) {
            let after = ChunkIndex(chunk.0 + 1);
            match ranges.last_mut() {
                Some(last) if last.end == chunk => last.end = after,
                Some(last) if last.end == after => {}
                _ => ranges.push(chunk..after),
            }
        }
        ranges
    }

    /// The bytes of all pages, in their order.
    #[must_use]
    pub fn page_bytes(&self) -> Vec<u64> {
        self.pages.iter().map(|page| page.bytes).collect()
    }

    /// All chunks, if the first page has this id and the others follow it.
    #[must_use]
    pub fn chunk_specs(&self, first: PageId) -> Vec<ChunkSpec> {
        let slice = |chunk, group| {
            let pages = self.slice(chunk, group).iter();
            pages.map(|page| PageId(first.0 + page.0)).collect()
        };
        let groups = (0..self.group_count).map(GroupIndex::from_usize);
        let spec = |chunk| ChunkSpec {
            rows: self.rows(chunk).end - self.rows(chunk).start,
            slices: groups.clone().map(|group| slice(chunk, group)).collect(),
        };
        self.chunks().map(spec).collect()
    }

    /// The pages of one column group of a chunk.
    #[must_use]
    pub fn slice(&self, chunk: ChunkIndex, group: GroupIndex) -> &[PageIndex] {
        self.slices.get(chunk.as_usize() * self.group_count + group.as_usize())
    }

    /// The chunks that a page serves, in order.
    #[must_use]
    pub fn chunks_of(&self, page: PageIndex) -> &[ChunkIndex] {
        self.chunks_of_page.get(page.as_usize())
    }

    /// The column group that a page belongs to.
    #[must_use]
    pub fn group_of(&self, page: PageIndex) -> GroupIndex {
        self.pages[page.as_usize()].group
    }

    /// The bytes of a page as stored.
    #[must_use]
    pub fn bytes_of(&self, page: PageIndex) -> u64 {
        self.pages[page.as_usize()].bytes
    }
}

/// Collects the pages and chunks of a [`Layout`].
#[derive(Clone, Debug)]
pub struct LayoutBuilder {
    group_count: usize,
    row_starts: Vec<u64>,
    pages: Vec<Page>,
    slices: Vec<Vec<PageIndex>>,
}

impl LayoutBuilder {
    /// Adds a page of a column group. `bytes` is what reading it costs and what holding it takes.
    ///
    /// # Panics
    /// If the group does not exist.
    pub fn add_page(&mut self, group: GroupIndex, bytes: u64) -> PageIndex {
        assert!(group.as_usize() < self.group_count, "{group:?} of {} groups", self.group_count);
        self.pages.push(Page { group, bytes });
        PageIndex::from_usize(self.pages.len() - 1)
    }

    /// Appends a chunk of `rows` rows. `slices` lists, for each column group, the pages that hold those rows.
    ///
    /// # Panics
    /// If there is not one slice for each group; if a slice names a page of another group, one that was never added, or
    /// one twice; or if the chunk has no rows.
    pub fn add_chunk(&mut self, rows: u64, slices: Vec<Vec<PageIndex>>) -> ChunkIndex {
        assert!(rows > 0, "a chunk has rows");
        assert_eq!(slices.len(), self.group_count, "one slice a group");
        for (group, slice) in slices.iter().enumerate() {
            for page in slice {
                assert_eq!(
                    self.pages[page.as_usize()].group.as_usize(),
                    group,
                    "{page:?} has another group"
                );
            }
            let distinct: BTreeSet<_> = slice.iter().collect();
            assert_eq!(distinct.len(), slice.len(), "a slice names a page once");
        }
        let chunk = ChunkIndex::from_usize(self.row_starts.len() - 1);
        self.row_starts.push(self.row_starts[chunk.as_usize()] + rows);
        self.slices.extend(slices);
        chunk
    }

    /// The finished layout.
    #[must_use]
    pub fn build(self) -> Layout {
        let mut chunks_of_page = vec![Vec::new(); self.pages.len()];
        for (position, slice) in self.slices.iter().enumerate() {
            let chunk = ChunkIndex::from_usize(position / self.group_count);
            for page in slice {
                chunks_of_page[page.as_usize()].push(chunk);
            }
        }
        Layout {
            group_count: self.group_count,
            row_starts: self.row_starts,
            pages: self.pages,
            slices: Lists::new(&self.slices),
            chunks_of_page: Lists::new(&chunks_of_page),
        }
    }
}

/// Many short lists in two arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lists<T> {
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Lists<T> {
    fn new(lists: &[Vec<T>]) -> Self {
        let mut ends = Vec::with_capacity(lists.len());
        let mut items = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        for list in lists {
            items.extend_from_slice(list);
            ends.push(u32::try_from(items.len()).expect("fewer than 2^32 pages in all slices"));
        }
        Self { ends, items }
    }

    fn get(&self, position: usize) -> &[T] {
        let start = if position == 0 { 0 } else { self.ends[position - 1] as usize };
        &self.items[start..self.ends[position] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in the picture at the head of this file, with 10 rows per chunk.
    fn picture() -> Layout {
        let (a, b) = (GroupIndex(0), GroupIndex(1));
        let mut builder = Layout::builder(2);
        let pages: Vec<_> = [(a, 5), (a, 5), (a, 5), (b, 40), (b, 20)]
            .map(|(group, bytes)| builder.add_page(group, bytes))
            .into();
        builder.add_chunk(10, vec![vec![pages[0]], vec![pages[3]]]);
        builder.add_chunk(10, vec![vec![pages[1]], vec![pages[3]]]);
        builder.add_chunk(10, vec![vec![pages[2]], vec![pages[4]]]);
        builder.build()
    }

    #[test]
    fn slices_and_their_inverse_agree() {
        let layout = picture();
        assert_eq!(layout.slice(ChunkIndex(1), GroupIndex(1)), [PageIndex(3)]);
        assert_eq!(layout.chunks_of(PageIndex(3)), [ChunkIndex(0), ChunkIndex(1)]);
        assert_eq!(layout.group_of(PageIndex(4)), GroupIndex(1));
        assert_eq!(layout.bytes_of(PageIndex(3)), 40);
        assert_eq!((layout.row_count(), layout.chunk_count(), layout.page_count()), (30, 3, 5));
    }

    #[test]
    fn row_ranges_name_the_chunks_that_hold_them() {
        let layout = picture();
        let chunks = |rows| layout.chunks_in(rows).map(|chunk| chunk.0).collect::<Vec<_>>();
        assert_eq!(chunks(0..30), [0, 1, 2]);
        assert_eq!(chunks(9..10), [0]);
        assert_eq!(chunks(9..11), [0, 1]);
        assert_eq!(chunks(10..20), [1]);
        assert_eq!(chunks(29..99), [2]);
        assert_eq!(chunks(5..5), [] as [u32; 0]);
        assert_eq!(chunks(40..50), [] as [u32; 0]);
    }
}
