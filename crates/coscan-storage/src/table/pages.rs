//! What a page and a chunk of the layout are in the files: bytes of one file, and row groups of one file.

use std::ops::Range;

/// One page of the layout: consecutive bytes of one file that belong to one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredPage {
    pub(super) file: usize,
    pub(super) row_group: usize,
    /// Offsets in the file.
    pub(super) bytes: Range<u64>,
    pub(super) contents: PageContents,
}

/// What a page holds. Leaves are counted over the file, data pages over the column chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageContents {
    /// Whole column chunks of these leaves, dictionaries included. In a row layout, of all leaves.
    Whole { leaves: Range<usize> },
    /// The dictionary of a column chunk whose row group is split.
    Dictionary { leaf: usize },
    /// A run of data pages of a column chunk whose row group is split.
    Run { leaf: usize, data_pages: Range<usize> },
}

impl StoredPage {
    pub(super) fn byte_count(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }
}

/// One chunk of the layout: rows of consecutive row groups of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredChunk {
    pub(super) file: usize,
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
