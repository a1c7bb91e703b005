//! Requests for stored pages: neighbours share one, a large page takes several.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use coscan_core::PageIndex;

use super::read::read_ranges;
use super::{ParquetFile, ReadError};
use crate::stores::coalesce;

impl ParquetFile {
    /// The requests that read these pages, each page once: neighbours together, up to `bytes_max` bytes (at least 1)
    /// each. A larger page takes several requests.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn requests(&self, pages: &[PageIndex], bytes_max: u64) -> Vec<PageRequest> {
        let mut sorted = pages.to_vec();
        sorted.sort_unstable_by_key(|&page| (self.page(page).bytes.start, page));
        sorted.dedup();
        let parts = sorted.into_iter().flat_map(|page| {
            pieces(&self.page(page).bytes, bytes_max.max(1)).map(move |bytes| (page, bytes))
        });
        let (pages, ranges): (Vec<_>, Vec<_>) = parts.unzip();
        let request = |group: Range<usize>| PageRequest {
            file: 0,
            ranges: ranges[group.clone()].to_vec(),
            pages: pages[group].to_vec(),
        };
        coalesce(&ranges, bytes_max).into_iter().map(request).collect()
    }

    /// Sends a request; [`put_together`] takes the answer. Each page has its own allocation, so that dropping a page
    /// frees its memory.
    ///
    /// # Errors
    /// If the file has changed, is gone or too short, or its store fails.
    pub async fn read(&self, request: &PageRequest) -> Result<Vec<Bytes>, ReadError> {
        read_ranges(&self.file, &self.name, &request.ranges).await
    }
}

/// Pages from the answers to all [`ParquetFile::requests`] for them, in the order of `pages`. A page of which a part
/// failed has that part's error.
///
/// # Panics
/// If a request for one of the pages is missing.
pub fn put_together<E: Clone>(
    pages: &[PageIndex],
    answers: Vec<(PageRequest, Result<Vec<Bytes>, E>)>,
) -> Vec<Result<Bytes, E>> {
    let mut parts: BTreeMap<PageIndex, Vec<Part<E>>> = BTreeMap::new();
    for (request, answer) in answers {
        for (position, (page, range)) in request.pages.iter().zip(&request.ranges).enumerate() {
            let part = answer.as_ref().map(|read| read[position].clone()).map_err(Clone::clone);
            parts.entry(*page).or_default().push((range.start, part));
        }
    }
    let found: BTreeMap<_, _> =
        parts.into_iter().map(|(page, parts)| (page, join(parts))).collect();
    let find = |page: &PageIndex| found.get(page).cloned().expect("every page is in a request");
    pages.iter().map(find).collect()
}

/// A part of a page: its offset in the file, and its bytes.
type Part<E> = (u64, Result<Bytes, E>);

/// A page from its parts.
fn join<E>(mut parts: Vec<Part<E>>) -> Result<Bytes, E> {
    parts.sort_unstable_by_key(|(start, _)| *start);
    let mut parts = parts.into_iter().map(|(_, part)| part).collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.len() == 1 { parts.remove(0) } else { parts.concat().into() })
}

/// Cuts a range into the fewest pieces of at most `bytes_max` bytes, of about equal size.
fn pieces(range: &Range<u64>, bytes_max: u64) -> impl Iterator<Item = Range<u64>> {
    let (start, bytes) = (range.start, range.end - range.start);
    let count = bytes.div_ceil(bytes_max).max(1);
    let piece_bytes = bytes.div_ceil(count);
    let cut = move |piece: u64| start + (piece * piece_bytes).min(bytes);
    (0..count).map(move |piece| cut(piece)..cut(piece + 1))
}

/// One request to a store: pages of one file that lie close together, or a part of a large one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub(super) file: usize,
    /// The ranges, ascending and without overlap.
    ranges: Vec<Range<u64>>,
    /// The page that each range is, or is a part of.
    pub(super) pages: Vec<PageIndex>,
}

impl PageRequest {
    /// The position of the file in the table that made the request; 0 if the file made it.
    #[must_use]
    pub fn file(&self) -> usize {
        self.file
    }

    /// The pages that it reads, whole or in part.
    #[must_use]
    pub fn pages(&self) -> &[PageIndex] {
        &self.pages
    }

    /// The size of the request in bytes, gaps included.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.ranges[self.ranges.len() - 1].end - self.ranges[0].start
    }
}
