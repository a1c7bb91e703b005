//! The first pages of column chunks, for queries that need ten rows of a million (`LIMIT 10`).
//!
//! - **Cut pages.** Pages can be large. If the first data page holds all wanted rows, only its start and that of its
//!   dictionary are read and decompressed, up to the last wanted value: `cut_pages` reads them step by step,
//!   `page_header` says how far they reach, `start` decompresses, `hybrid` reads levels and indexes into the
//!   dictionary, `cut` makes a shorter page, `cut_reader` hands it to parquet's decoder.
//! - **Whole pages.** Where that is not possible, a column chunk is read from its start up to the last page with
//!   wanted rows. The page index says how far that is; without one, the page headers do, one after the other
//!   (`whole`).
//!
//! Source: the Parquet format (<https://github.com/apache/parquet-format>): `PageHeader`, `DataPageHeader`,
//! `DataPageHeaderV2` and `DictionaryPageHeader` in `parquet.thrift`, "Data Pages" in `README.md`, `Encodings.md` and
//! `Compression.md`. Headers are in Thrift's compact protocol (see `thrift`).

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

/// The minimum read at the start of a page, in bytes: the header, and all of a small page.
const STEP_BYTES: u64 = 16 * 1024;

/// Headers have a few dozen bytes, besides a minimum and a maximum.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;

/// The first pages of a column of a chunk. They arrive in steps: [`Self::wanted`] says what to read next,
/// [`Self::push`] adds it.
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
    /// The ranges of bytes to read next from the file of the chunk. Empty when the prefix is complete.
    #[must_use]
    pub fn wanted(&self) -> Vec<Range<u64>> {
        self.leaves.iter().flat_map(LeafPrefix::wanted).collect()
    }

    /// Adds the wanted bytes, in the same order. More may be wanted afterwards, as headers say how far pages reach.
    ///
    /// # Errors
    /// If the bytes are not the start of a column chunk.
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

    /// Bytes that were added or are wanted next: a lower bound of the bytes that the prefix takes.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        self.leaves.iter().map(LeafPrefix::needed_bytes).sum()
    }

    /// The size in bytes of the column chunks that it begins.
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

/// The part of a column chunk that is read.
#[derive(Clone, Debug)]
pub(super) enum LeafStart {
    /// Whole pages.
    Whole(WholePages),
    /// The start of a page, and whole pages in case it cannot be cut.
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
