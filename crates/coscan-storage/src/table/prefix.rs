//! The first rows of a chunk, from the first pages of its column chunks: whoever wants ten rows of a million need not
//! read and decode all of them.
//!
//! - Pages can be large: of a first data page that holds all of the rows, and of its dictionary, just the start is read and
//!   decompressed, as far as it holds values of these rows (`cut_pages`, `cut`, `start`, `hybrid`).
//! - Where that is not possible a column chunk is read from its start until the pages that hold the rows are there. How far
//!   that is the page index says, where the file has one; else the headers of the pages do, one after the other as they
//!   come (`whole`).

mod cut;
mod cut_pages;
mod cut_reader;
mod hybrid;
mod page_header;
mod start;
mod whole;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::ChunkIndex;
use parquet::file::metadata::ParquetMetaData;

use super::DecodeError;
use cut_pages::CutPages;
pub(super) use cut_reader::CutReader;
pub(super) use whole::WholePages;

/// What is read where a page begins, at least: with its header, the whole of a small page.
const STEP_BYTES: u64 = 16 * 1024;

/// Headers have a few dozen bytes, and a minimum and a maximum.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;

/// The first pages of a column of a chunk, as far as they are there.
#[derive(Clone, Debug)]
pub struct ColumnPrefix {
    /// Of the table.
    pub(super) chunk: ChunkIndex,
    pub(super) column: usize,
    /// For errors.
    pub(super) name: String,
    pub(super) file: Arc<str>,
    pub(super) rows: u64,
    /// Row group by row group; none if the file lacks the column.
    pub(super) leaves: Vec<LeafPrefix>,
}

impl ColumnPrefix {
    /// What is to be read next, as ranges of bytes of the file that holds the chunk. None if all is there.
    #[must_use]
    pub fn wanted(&self) -> Vec<Range<u64>> {
        self.leaves.iter().flat_map(LeafPrefix::wanted).collect()
    }

    /// Adds the bytes that were wanted, in the same order. More may be wanted then: headers of pages say how far they
    /// reach.
    ///
    /// # Errors
    /// If what was read is not the start of a column chunk.
    pub fn push(&mut self, read: Vec<Bytes>) -> Result<(), DecodeError> {
        let mut read = read.into_iter();
        for leaf in &mut self.leaves {
            let read = read.by_ref().take(leaf.wanted().len()).collect::<Vec<_>>();
            if read.is_empty() {
                continue;
            }
            leaf.push(read).map_err(|reason| DecodeError::Corrupt {
                file: Arc::clone(&self.file),
                column: self.name.clone(),
                chunk: self.chunk,
                reason,
            })?;
        }
        Ok(())
    }

    /// Bytes that are there, or wanted next: at least so many are needed.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        self.leaves.iter().map(LeafPrefix::needed_bytes).sum()
    }

    /// Bytes of the column chunks, of which it needs the first.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.leaves.iter().map(LeafPrefix::all_bytes).sum()
    }
}

/// The first pages of a column chunk.
#[derive(Clone, Debug)]
pub(super) struct LeafPrefix {
    pub(super) row_group: usize,
    pub(super) leaf: usize,
    /// To be held, counted from the first row of the chunk.
    pub(super) rows: Range<u64>,
    pub(super) pages: LeafStart,
}

/// What is read of a column chunk.
#[derive(Clone, Debug)]
pub(super) enum LeafStart {
    /// Whole pages.
    Whole(WholePages),
    /// The start of a page. If that does not do, the other.
    Cut(Box<CutPages>, WholePages),
}

impl LeafPrefix {
    pub(super) fn new(
        metadata: &ParquetMetaData,
        row_group: usize,
        leaf: usize,
        rows: Range<u64>,
    ) -> Self {
        let row_count = rows.end - rows.start;
        let whole = WholePages::new(metadata, row_group, leaf, row_count);
        let pages = match CutPages::new(metadata.row_group(row_group).column(leaf), row_count) {
            Some(cut) if whole.may_be_cut() => LeafStart::Cut(Box::new(cut), whole),
            _ => LeafStart::Whole(whole),
        };
        Self { row_group, leaf, rows, pages }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    fn wanted(&self) -> Vec<Range<u64>> {
        match &self.pages {
            LeafStart::Whole(pages) => pages.wanted().into_iter().collect(),
            LeafStart::Cut(pages, _) => pages.wanted(),
        }
    }

    fn push(&mut self, read: Vec<Bytes>) -> Result<(), String> {
        match &mut self.pages {
            LeafStart::Whole(pages) => read.into_iter().try_for_each(|bytes| pages.push(bytes)),
            LeafStart::Cut(pages, whole) => {
                if !pages.push(read) {
                    self.pages = LeafStart::Whole(whole.clone());
                }
                Ok(())
            }
        }
    }

    fn needed_bytes(&self) -> u64 {
        match &self.pages {
            LeafStart::Whole(pages) => pages.needed_bytes(),
            LeafStart::Cut(pages, _) => pages.needed_bytes(),
        }
    }

    fn all_bytes(&self) -> u64 {
        let (LeafStart::Whole(whole) | LeafStart::Cut(_, whole)) = &self.pages;
        whole.all_bytes()
    }
}
