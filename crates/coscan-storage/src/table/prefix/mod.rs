//! The first pages of column chunks, for queries that need ten rows of a million (`LIMIT 10`). A column chunk is read
//! from its start up to the last page with wanted rows. The page index gives its end; without one, the page headers do,
//! one after the other.
//!
//! Source: the Parquet format (<https://github.com/apache/parquet-format>): `PageHeader`, `DataPageHeader` and
//! `DataPageHeaderV2` in `parquet.thrift`, "Data Pages" in `README.md`. Headers are in Thrift's compact protocol (see
//! `thrift`).

mod first_pages;
mod page_header;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::ChunkIndex;
use parquet::file::metadata::ParquetMetaData;

use super::DecodeError;
use first_pages::FirstPages;

/// The first pages of a column of a chunk. They arrive in steps: [`Self::wanted`] returns what to read next, and
/// [`Self::push`] adds it.
#[derive(Clone, Debug)]
pub struct ColumnPrefix {
    /// The chunk, as the table counts it.
    pub(super) chunk: ChunkIndex,
    pub(super) column: usize,
    /// The name of the column, for errors.
    pub(super) name: String,
    pub(super) file: Arc<str>,
    pub(super) rows: u64,
    /// The prefixes row group by row group; none if the file lacks the column.
    pub(super) leaves: Vec<LeafPrefix>,
}

impl ColumnPrefix {
    /// The ranges of bytes to read next from the file of the chunk. Empty when the prefix is complete.
    #[must_use]
    pub fn wanted(&self) -> Vec<Range<u64>> {
        self.leaves.iter().filter_map(|leaf| leaf.pages.wanted()).collect()
    }

    /// Adds the wanted bytes, in the same order. More may be wanted afterwards, since headers give the end of pages.
    ///
    /// # Errors
    /// If the bytes are not the start of a column chunk.
    pub fn push(&mut self, read: Vec<Bytes>) -> Result<(), DecodeError> {
        let mut read = read.into_iter();
        for leaf in &mut self.leaves {
            if leaf.pages.wanted().is_none() {
                continue;
            }
            let Some(bytes) = read.next() else { break };
            leaf.pages.push(bytes).map_err(|reason| DecodeError::Corrupt {
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
        self.leaves.iter().map(|leaf| leaf.pages.needed_bytes()).sum()
    }

    /// The size in bytes of the column chunks that it begins.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.leaves.iter().map(|leaf| leaf.pages.all_bytes()).sum()
    }
}

/// The first pages of a column chunk.
#[derive(Clone, Debug)]
pub(super) struct LeafPrefix {
    pub(super) row_group: usize,
    pub(super) leaf: usize,
    /// The rows that it is to hold, counted from the first row of the chunk.
    pub(super) rows: Range<u64>,
    pub(super) pages: FirstPages,
}

impl LeafPrefix {
    pub(super) fn new(
        metadata: &ParquetMetaData,
        row_group: usize,
        leaf: usize,
        rows: Range<u64>,
    ) -> Self {
        let pages = FirstPages::new(metadata, row_group, leaf, rows.end - rows.start);
        Self { row_group, leaf, rows, pages }
    }

    pub(super) fn row_count(&self) -> u64 {
        self.rows.end - self.rows.start
    }
}
