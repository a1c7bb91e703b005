//! Reads pages from the start of a column chunk, up to the last one with wanted rows.

use std::ops::Range;

use bytes::Bytes;
use parquet::file::metadata::ParquetMetaData;

use super::page_header::{Contents, page_header};
use crate::table::row_ranges::{DataPages, row_count};

/// The minimum read at the start of a page, in bytes: the header, and all of a small page.
const STEP_BYTES: u64 = 16 * 1024;

/// The largest header. Headers have a few dozen bytes, in addition to a minimum and a maximum.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;

/// The first pages of a column chunk.
#[derive(Clone, Debug)]
pub(in crate::table) struct FirstPages {
    /// The number of wanted rows.
    rows: u64,
    /// The range of the column chunk in the file.
    bytes: Range<u64>,
    /// Whether a row may have several values.
    is_repeated: bool,
    read: Bytes,
    /// The bytes of the column chunk that are known to be needed.
    needed_bytes: u64,
    extent: Extent,
}

/// The end of the pages that are needed.
#[derive(Clone, Copy, Debug)]
enum Extent {
    /// The pages reach to the end of the column chunk.
    All,
    /// After this number of data pages, whose locations the page index lists.
    Pages(usize),
    /// The end is yet to be found from page headers: a page begins `start` bytes behind the start of the column chunk,
    /// and the pages before it hold `rows` rows.
    Found { start: u64, rows: u64 },
}

impl FirstPages {
    pub(super) fn new(
        metadata: &ParquetMetaData,
        row_group: usize,
        leaf: usize,
        rows: u64,
    ) -> Self {
        let column = metadata.row_group(row_group).column(leaf);
        let (start, length) = column.byte_range();
        let (extent, needed_bytes) = if rows == row_count(metadata, row_group) {
            (Extent::All, length)
        } else if let Some(data_pages) = DataPages::of(metadata, row_group, leaf) {
            let pages = data_pages.holding_first(rows);
            (Extent::Pages(pages), data_pages.bytes(0..pages).end - start)
        } else {
            let first_page = column.data_page_offset().cast_unsigned().saturating_sub(start);
            (Extent::Found { start: 0, rows: 0 }, first_page.min(length) + STEP_BYTES)
        };
        let is_repeated = column.column_descr().max_rep_level() > 0;
        Self {
            rows,
            bytes: start..start + length,
            is_repeated,
            read: Bytes::new(),
            needed_bytes: needed_bytes.min(length),
            extent,
        }
    }

    pub(super) fn all_bytes(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    pub(super) fn wanted(&self) -> Option<Range<u64>> {
        let wanted =
            self.bytes.start + self.read.len() as u64..self.bytes.start + self.needed_bytes;
        (!wanted.is_empty()).then_some(wanted)
    }

    pub(super) fn push(&mut self, bytes: Bytes) -> Result<(), String> {
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
            let held = match header.contents {
                Contents::DataV2 { rows } => rows,
                Contents::Data { values } if !self.is_repeated => values,
                // Only the levels say how many rows begin in the page, and the last row may continue in the next
                // page.
                Contents::Data { .. } => {
                    self.extent = Extent::All;
                    return self.need(self.all_bytes());
                }
                Contents::NoRows => 0,
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

    pub(super) fn needed_bytes(&self) -> u64 {
        self.needed_bytes
    }

    /// The offset in the file of the first page, and the bytes of the needed pages that were read.
    pub(in crate::table) fn pages(&self) -> (u64, Bytes) {
        let end = match self.extent {
            Extent::Found { start, .. } => usize::try_from(start).unwrap_or(usize::MAX),
            Extent::All | Extent::Pages(_) => self.read.len(),
        };
        (self.bytes.start, self.read.slice(..end.min(self.read.len())))
    }

    /// The number of data pages, if the page index lists them.
    pub(in crate::table) fn listed(&self) -> Option<usize> {
        match self.extent {
            Extent::Pages(pages) => Some(pages),
            Extent::All | Extent::Found { .. } => None,
        }
    }
}
