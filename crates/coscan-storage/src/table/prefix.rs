//! The first rows of a chunk, from the first pages of its column chunks: whoever wants ten rows of a million need not
//! read and decode all of them.
//!
//! A column chunk is read from its start until the pages that hold the rows are there. How far that is the page index
//! says, where the file has one; else the headers of the pages do, one after the other as they come.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, PageIndex};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use super::column_pages::row_count;
use super::layout::page_locations;
use super::thrift::page_header;
use super::{ColumnDecoder, DecodeError, ParquetTable};

/// What is read where the next header of a page is to be: with it, the whole of a small page.
const STEP_BYTES: u64 = 16 * 1024;

/// Headers have a few dozen bytes, and a minimum and a maximum.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;

/// The first pages of a column of a chunk, as far as they are there.
#[derive(Clone, Debug)]
pub struct ColumnPrefix {
    /// Of the table.
    chunk: ChunkIndex,
    column: usize,
    /// For errors.
    name: String,
    file: Arc<str>,
    rows: u64,
    /// Row group by row group; none if the file lacks the column.
    leaves: Vec<LeafPrefix>,
}

impl ParquetTable {
    /// The pages that hold the first `rows` rows of a column of a chunk. Nothing of them is there yet: it says itself what
    /// is to be read. `None` if the chunk has fewer rows, or begins within a row group.
    ///
    /// # Panics
    /// If there is no such chunk or column.
    #[must_use]
    pub fn prefix(&self, chunk: ChunkIndex, column: usize, rows: u64) -> Option<ColumnPrefix> {
        let (index, in_file) = self.place_of(chunk);
        let file = &self.parquet_files()[index];
        let stored = file.chunk(in_file);
        if stored.rows.start > 0 || stored.row_count() < rows {
            return None;
        }
        let mut leaves = Vec::new();
        if let Some(column) = self.file_column(index, column) {
            let mut rows_left = rows;
            for &row_group in &stored.row_groups {
                let held = rows_left.min(row_count(&file.metadata, row_group));
                if held == 0 {
                    break;
                }
                rows_left -= held;
                let of_leaf = |leaf| LeafPrefix::new(&file.metadata, row_group, leaf, held);
                leaves.extend(file.leaves(column).map(of_leaf));
            }
        }
        let name = self.schema().field(column).name().clone();
        Some(ColumnPrefix { chunk, column, name, file: Arc::clone(&file.name), rows, leaves })
    }

    /// Decodes the rows of a prefix that is all there, into one array of the column's type in [`Self::schema`].
    ///
    /// # Errors
    /// As [`Self::decode`], also if something of it is missing.
    ///
    /// # Panics
    /// If it is of another table.
    pub fn decode_prefix(&self, prefix: &ColumnPrefix) -> Result<ColumnDecoder, DecodeError> {
        let (index, chunk) = self.place_of(prefix.chunk);
        let file = &self.parquet_files()[index];
        let Some(column) = self.file_column(index, prefix.column) else {
            let nothing = |_: PageIndex| Bytes::new();
            let rows = usize::try_from(prefix.rows).unwrap_or(usize::MAX);
            let selection = std::iter::once(0..prefix.rows).collect::<Vec<_>>();
            return self.decode(prefix.chunk, prefix.column, &nothing, Some(&selection), rows);
        };
        let decoder = file.decode_prefixes(chunk, column, prefix.rows, &prefix.leaves)?;
        Ok(decoder.with_type(self.data_type(prefix.column).clone()))
    }
}

impl ColumnPrefix {
    /// What is to be read next, as ranges of bytes of the file that holds the chunk. None if all is there.
    #[must_use]
    pub fn wanted(&self) -> Vec<Range<u64>> {
        self.leaves.iter().filter_map(LeafPrefix::wanted).collect()
    }

    /// Adds the bytes that were wanted, in the same order. More may be wanted then: headers of pages say how far they
    /// reach.
    ///
    /// # Errors
    /// If what was read is not the start of a column chunk.
    pub fn push(&mut self, read: Vec<Bytes>) -> Result<(), DecodeError> {
        let wanting = self.leaves.iter_mut().filter(|leaf| leaf.wanted().is_some());
        for (leaf, bytes) in wanting.zip(read) {
            leaf.push(bytes).map_err(|reason| DecodeError::Corrupt {
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
        self.leaves.iter().map(|leaf| leaf.needed_bytes).sum()
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
    /// Of the row group, to be held.
    pub(super) rows: u64,
    /// Offsets of the column chunk in the file.
    bytes: Range<u64>,
    /// Whether a row may have several values.
    is_repeated: bool,
    read: Bytes,
    /// So much of the column chunk is needed, as far as is known.
    needed_bytes: u64,
    extent: Extent,
}

/// How far the pages reach.
#[derive(Clone, Copy, Debug)]
enum Extent {
    /// All of the column chunk.
    All,
    /// So many data pages, as the page index says.
    Pages(usize),
    /// As headers will say: a page begins `start` bytes behind the start of the column chunk, and those before it hold
    /// `rows` rows.
    Found { start: u64, rows: u64 },
}

impl LeafPrefix {
    fn new(metadata: &ParquetMetaData, row_group: usize, leaf: usize, rows: u64) -> Self {
        let column = metadata.row_group(row_group).column(leaf);
        let (start, length) = column.byte_range();
        let locations = page_locations(metadata, row_group, leaf);
        let (extent, needed_bytes) = if rows == row_count(metadata, row_group) {
            (Extent::All, length)
        } else if let Some(locations) = locations {
            let is_needed = |page: &PageLocation| page.first_row_index.cast_unsigned() < rows;
            let pages = locations.partition_point(is_needed);
            let last = &locations[pages - 1];
            let end = last.offset + i64::from(last.compressed_page_size);
            (Extent::Pages(pages), end.cast_unsigned() - start)
        } else {
            let first_page = column.data_page_offset().cast_unsigned().saturating_sub(start);
            (Extent::Found { start: 0, rows: 0 }, first_page.min(length) + STEP_BYTES)
        };
        let is_repeated = column.column_descr().max_rep_level() > 0;
        Self {
            row_group,
            leaf,
            rows,
            bytes: start..start + length,
            is_repeated,
            read: Bytes::new(),
            needed_bytes: needed_bytes.min(length),
            extent,
        }
    }

    fn all_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    fn wanted(&self) -> Option<Range<u64>> {
        let wanted =
            self.bytes.start + self.read.len() as u64..self.bytes.start + self.needed_bytes;
        (!wanted.is_empty()).then_some(wanted)
    }

    fn push(&mut self, bytes: Bytes) -> Result<(), String> {
        self.read =
            if self.read.is_empty() { bytes } else { [&self.read[..], &bytes].concat().into() };
        while let Extent::Found { start, rows } = self.extent {
            if rows >= self.rows || start == self.all_bytes() {
                return self.need(start);
            }
            let rest = usize::try_from(start).ok().and_then(|start| self.read.get(start..));
            let rest = rest.unwrap_or_default();
            let Some(header) = page_header(rest) else {
                let is_cut_off = (self.read.len() as u64) < self.all_bytes()
                    && (rest.len() as u64) < HEADER_BYTES_MAX;
                let more = start + (2 * rest.len() as u64).max(STEP_BYTES);
                return match is_cut_off {
                    true => self.need(more.min(self.all_bytes())),
                    false => Err(format!("the header of the page {start} bytes on makes no sense")),
                };
            };
            let held = match (header.values, header.rows) {
                (_, Some(rows)) => rows,
                (Some(values), None) if !self.is_repeated => values,
                // How many rows begin in the page only its levels say, and the last one may go on in the next.
                (Some(_), None) => {
                    self.extent = Extent::All;
                    return self.need(self.all_bytes());
                }
                (None, None) => 0,
            };
            let end = start.saturating_add(header.header_bytes).saturating_add(header.body_bytes);
            self.extent = Extent::Found { start: end, rows: rows + held };
        }
        Ok(())
    }

    fn need(&mut self, bytes: u64) -> Result<(), String> {
        if bytes > self.all_bytes() {
            return Err(format!("a page reaches {} bytes too far", bytes - self.all_bytes()));
        }
        self.needed_bytes = self.needed_bytes.max(bytes);
        Ok(())
    }

    /// Where its pages begin, and what is there of those that are needed.
    pub(super) fn pages(&self) -> (u64, Bytes) {
        let end = match self.extent {
            Extent::Found { start, .. } => usize::try_from(start).unwrap_or(usize::MAX),
            Extent::All | Extent::Pages(_) => self.read.len(),
        };
        (self.bytes.start, self.read.slice(..end.min(self.read.len())))
    }

    /// Where the data pages are, if the page index says so.
    pub(super) fn locations<'a>(
        &self,
        metadata: &'a ParquetMetaData,
    ) -> Option<&'a [PageLocation]> {
        let Extent::Pages(pages) = self.extent else { return None };
        page_locations(metadata, self.row_group, self.leaf)?.get(..pages)
    }
}
