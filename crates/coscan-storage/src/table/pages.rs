//! Pages and chunks of a file: ranges of bytes, and rows of row groups.

use std::ops::Range;

use coscan_core::{ChunkIndex, Index, PageIndex};

/// One page: consecutive bytes that belong to one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredPage {
    pub(super) row_group: usize,
    /// Its range of bytes in the file.
    pub(super) bytes: Range<u64>,
    pub(super) contents: PageContents,
}

/// The content of a page. Leaves are counted within the file, data pages within the column chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageContents {
    /// Whole column chunks, dictionaries included: those of a column, of some of its leaves, or in a row layout of all
    /// columns.
    Whole,
    /// The dictionary of a column chunk whose row group is split.
    Dictionary,
    /// A run of data pages of a column chunk whose row group is split.
    Run { leaf: usize, data_pages: Range<usize> },
}

impl StoredPage {
    pub(super) fn byte_count(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }
}

/// One chunk: rows of consecutive row groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredChunk {
    /// The row groups that have rows, in order. A part of a split row group names just that one.
    pub(super) row_groups: Vec<usize>,
    /// The rows of the chunk, counted from the first row of its first row group.
    pub(super) rows: Range<u64>,
    /// Whether the row group is split, so that this chunk is a part of it.
    pub(super) is_part: bool,
}

impl StoredChunk {
    pub(super) fn row_count(&self) -> u64 {
        self.rows.end - self.rows.start
    }
}

/// The pages of each column group of each chunk, in two arrays.
#[derive(Debug)]
pub(super) struct Slices {
    group_count: usize,
    /// The end of the slice of group g of chunk c among the pages, at c × groups + g.
    ends: Vec<u32>,
    pages: Vec<PageIndex>,
}

impl Slices {
    pub(super) fn new(group_count: usize) -> Self {
        Self { group_count, ends: Vec::new(), pages: Vec::new() }
    }

    /// Adds the slices of the next chunk, one per group.
    pub(super) fn push(&mut self, slices: &[Vec<PageIndex>]) {
        assert_eq!(slices.len(), self.group_count, "one slice per group");
        for slice in slices {
            self.pages.extend_from_slice(slice);
            let end = u32::try_from(self.pages.len()).expect("fewer than 2^32 pages in all slices");
            self.ends.push(end);
        }
    }

    pub(super) fn of(&self, chunk: ChunkIndex, group: usize) -> &[PageIndex] {
        let position = chunk.as_usize() * self.group_count + group;
        let start = if position == 0 { 0 } else { self.ends[position - 1] as usize };
        &self.pages[start..self.ends[position] as usize]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.ends.as_slice()) + size_of_val(self.pages.as_slice())
    }
}
