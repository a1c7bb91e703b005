//! Reads the start of the first data page of a column chunk, and of its dictionary, step by step until both can be
//! cut.

use std::ops::Range;

use bytes::Bytes;
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;

use super::cut::{Cut, Cutter, PageStart};
use super::page_header::{Contents, PageHeader, page_header};
use super::{HEADER_BYTES_MAX, STEP_BYTES};

/// The size of a value, as a first guess.
const VALUE_BYTES: u64 = 16;

/// The start of a data page that holds all wanted rows, and of its dictionary if it has one.
#[derive(Clone, Debug)]
pub(in crate::table) struct CutPages {
    cutter: Cutter,
    /// The end of the column chunk in the file.
    end: u64,
    /// The size of the first read of a page.
    step_bytes: u64,
    /// The start of the first page of the column chunk.
    first: Region,
    /// The start of the page after it, if the first is a dictionary.
    second: Option<Region>,
    /// The cut pages, once enough bytes are there.
    pages: Option<Vec<Page>>,
}

/// Consecutive bytes of a file that are being read.
#[derive(Clone, Debug)]
struct Region {
    start: u64,
    read: Bytes,
    needed_bytes: u64,
}

impl Region {
    fn new(start: u64, bytes: u64) -> Self {
        Self { start, read: Bytes::new(), needed_bytes: bytes }
    }

    fn wanted(&self) -> Option<Range<u64>> {
        let wanted = self.start + self.read.len() as u64..self.start + self.needed_bytes;
        (!wanted.is_empty()).then_some(wanted)
    }

    fn push(&mut self, bytes: Bytes) {
        self.read =
            if self.read.is_empty() { bytes } else { [&self.read[..], &bytes].concat().into() };
    }

    /// Doubles the needed bytes, up to an offset in the file. False if they reach it already.
    fn grow(&mut self, end: u64) -> bool {
        let needed_bytes = (2 * self.needed_bytes).min(end.saturating_sub(self.start));
        let grows = needed_bytes > self.needed_bytes;
        self.needed_bytes = self.needed_bytes.max(needed_bytes);
        grows
    }

    /// The page that begins here, as far as it has been read.
    fn page(&self, header: PageHeader) -> PageStart<'_> {
        let length = self.read.len() as u64;
        let end = (header.header_bytes.saturating_add(header.body_bytes)).min(length);
        // Both are at most the length of a buffer.
        let body = &self.read[header.header_bytes as usize..end as usize];
        PageStart { header, body }
    }
}

impl CutPages {
    /// For the first `rows` rows of a column chunk; `None` if its pages cannot be cut.
    pub(super) fn new(column: &ColumnChunkMetaData, rows: u64) -> Option<Self> {
        let cutter = Cutter::new(column, rows)?;
        let (start, length) = column.byte_range();
        let end = start + length;
        let step_bytes = STEP_BYTES.max(rows.saturating_mul(VALUE_BYTES));
        // A guess: the header of the dictionary says where the data page begins.
        let second = column.data_page_offset().cast_unsigned();
        let is_apart = second > start + step_bytes && second < end;
        Some(Self {
            cutter,
            end,
            step_bytes,
            first: Region::new(start, step_bytes.min(length)),
            second: is_apart.then(|| Region::new(second, step_bytes.min(end - second))),
            pages: None,
        })
    }

    pub(super) fn wanted(&self) -> Vec<Range<u64>> {
        let second = self.second.as_ref().and_then(Region::wanted);
        self.first.wanted().into_iter().chain(second).collect()
    }

    pub(super) fn needed_bytes(&self) -> u64 {
        self.first.needed_bytes + self.second.as_ref().map_or(0, |region| region.needed_bytes)
    }

    /// The cut pages, once nothing more is wanted.
    pub(in crate::table) fn pages(&self) -> Option<&Vec<Page>> {
        self.pages.as_ref()
    }

    /// Adds the wanted bytes. False if the pages cannot be cut.
    pub(super) fn push(&mut self, read: Vec<Bytes>) -> bool {
        let mut read = read.into_iter();
        for region in std::iter::once(&mut self.first).chain(&mut self.second) {
            if region.wanted().is_some()
                && let Some(bytes) = read.next()
            {
                region.push(bytes);
            }
        }
        self.go_on().unwrap_or(false)
    }

    /// Cuts the pages, or wants more bytes. `None` or false if they cannot be cut.
    fn go_on(&mut self) -> Option<bool> {
        let Some(first) = page_header(&self.first.read) else {
            return Some(grow_header(&mut self.first, self.end));
        };
        let first_end =
            self.first.start.checked_add(first.header_bytes)?.checked_add(first.body_bytes)?;
        if first_end > self.end {
            return None;
        }
        let Contents::Dictionary { .. } = first.contents else {
            self.second = None;
            let cut = self.cutter.cut(None, self.first.page(first));
            return Some(self.take(cut, first_end, first_end));
        };
        self.place_second(first_end);
        let region = self.second.as_mut()?;
        if region.read.is_empty() {
            return Some(region.wanted().is_some());
        }
        let Some(second) = page_header(&region.read) else {
            return Some(grow_header(region, self.end));
        };
        let second_end =
            first_end.checked_add(second.header_bytes)?.checked_add(second.body_bytes)?;
        if second_end > self.end {
            return None;
        }
        let cut = self.cutter.cut(Some(self.first.page(first)), region.page(second));
        Some(self.take(cut, first_end, second_end))
    }

    /// The second page begins here. Bytes of it that were read with the first one are kept.
    fn place_second(&mut self, start: u64) {
        let first_bytes = start - self.first.start;
        if self.first.read.len() as u64 > first_bytes {
            let read =
                self.first.read.split_off(usize::try_from(first_bytes).unwrap_or(usize::MAX));
            self.first.needed_bytes = first_bytes;
            self.second = Some(Region { start, needed_bytes: read.len() as u64, read });
        } else if self.second.as_ref().is_none_or(|region| region.start != start) {
            let bytes = self.step_bytes.min(self.end - start);
            self.second = Some(Region::new(start, bytes));
        }
    }

    fn take(&mut self, cut: Cut, first_end: u64, data_end: u64) -> bool {
        match cut {
            Cut::Done(pages) => {
                self.pages = Some(pages);
                true
            }
            Cut::MoreDictionary => self.first.grow(first_end),
            Cut::MoreData => self.second.as_mut().unwrap_or(&mut self.first).grow(data_end),
            Cut::Unfit => false,
        }
    }
}

/// Wants more of a page whose header is cut off. False if it is too long for a header.
fn grow_header(region: &mut Region, end: u64) -> bool {
    (region.read.len() as u64) < HEADER_BYTES_MAX && region.grow(end)
}
