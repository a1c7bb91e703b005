//! Reads pages as they are stored: neighbours in one request, large ones in several, every request on condition that
//! the file is still the one that was opened.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::PageIndex;
use object_store::{Error as StoreError, GetOptions, GetRange, GetResult, ObjectMeta};

use super::body::split_body;
use super::{ParquetFile, ReadError, TableFile};

/// Pages that lie closer than this are read together: on object stores and disks alike a request costs more.
pub const GAP_BYTES_MAX: u64 = 64 * 1024;

impl ParquetFile {
    /// The requests that read these pages, each page once: neighbours together, none of more than `bytes_max` bytes
    /// (at least 1). A larger page takes several.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn requests(&self, pages: &[PageIndex], bytes_max: u64) -> Vec<PageRequest> {
        let mut sorted = pages.to_vec();
        sorted.sort_unstable_by_key(|&page| (self.page(page).bytes.start, page));
        sorted.dedup();
        let mut requests: Vec<PageRequest> = Vec::new();
        for page in sorted {
            for bytes in pieces(&self.page(page).bytes, bytes_max.max(1)) {
                match requests.last_mut() {
                    Some(last) if last.can_take(&bytes, bytes_max) => {
                        last.ranges.push(bytes);
                        last.pages.push(page);
                    }
                    _ => requests.push(PageRequest {
                        file: 0,
                        ranges: vec![bytes],
                        pages: vec![page],
                    }),
                }
            }
        }
        requests
    }

    /// Sends a request. The answer is for [`put_together`]. Each page has its own allocation, so that dropping it frees
    /// its memory.
    ///
    /// # Errors
    /// If the file has changed, is gone or too short, or its store fails.
    pub async fn read(&self, request: &PageRequest) -> Result<Vec<Bytes>, ReadError> {
        read_ranges(&self.file, &self.name, &request.ranges).await
    }
}

/// Pages from the answers to all [`ParquetFile::requests`] for them, in the order asked for. A page with a part that
/// could not be read has that part's error.
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

/// Where a part of a page starts in its file, and what was read of it.
type Part<E> = (u64, Result<Bytes, E>);

/// A page from its parts.
fn join<E>(mut parts: Vec<Part<E>>) -> Result<Bytes, E> {
    parts.sort_unstable_by_key(|(start, _)| *start);
    let mut parts = parts.into_iter().map(|(_, part)| part).collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.len() == 1 { parts.remove(0) } else { parts.concat().into() })
}

/// Cuts a range into as few pieces of about the same size as keep below `bytes_max`.
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
    /// Ascending, without overlap.
    ranges: Vec<Range<u64>>,
    /// The page that each range is, or is a part of.
    pub(super) pages: Vec<PageIndex>,
}

impl PageRequest {
    /// The file that is read: its position in the table that made the request, 0 if the file did itself.
    #[must_use]
    pub fn file(&self) -> usize {
        self.file
    }

    /// The pages that it reads, or of which it reads a part.
    #[must_use]
    pub fn pages(&self) -> &[PageIndex] {
        &self.pages
    }

    /// Bytes that are asked for, gaps included.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.ranges[self.ranges.len() - 1].end - self.ranges[0].start
    }

    fn can_take(&self, range: &Range<u64>, bytes_max: u64) -> bool {
        let (start, end) = (self.ranges[0].start, self.ranges[self.ranges.len() - 1].end);
        let is_near = range.start >= end && range.start - end <= GAP_BYTES_MAX;
        is_near && range.end - start <= bytes_max
    }
}

/// Reads one range of a file.
pub(super) async fn read_range(
    file: &TableFile,
    name: &Arc<str>,
    range: Range<u64>,
) -> Result<Bytes, ReadError> {
    let read = read_ranges(file, name, std::slice::from_ref(&range)).await?;
    Ok(read.into_iter().next().expect("one range gives one result"))
}

impl TableFile {
    /// Reads a range of the file, in bytes, on condition that it is the file that was listed.
    ///
    /// # Errors
    /// If it has changed, is gone or too short, or its store fails.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes, ReadError> {
        read_range(self, &self.name().into(), range).await
    }

    /// Reads ranges of the file, ascending and without overlap, in one request. Each has its own allocation.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, ReadError> {
        read_ranges(self, &self.name().into(), ranges).await
    }

    /// Asks the store whether the file is still the one that was listed, without reading any of it.
    ///
    /// # Errors
    /// If it has changed or is gone, or its store fails.
    pub async fn check(&self) -> Result<(), ReadError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        get(self, &self.name().into(), options).await.map(drop)
    }
}

/// Reads ranges of a file, ascending and without overlap, in one request.
async fn read_ranges(
    file: &TableFile,
    name: &Arc<str>,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>, ReadError> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(Vec::new()) };
    let whole = first.start..last.end;
    if whole.is_empty() {
        return Ok(vec![Bytes::new(); ranges.len()]);
    }
    let range = Some(GetRange::Bounded(whole.clone()));
    let result = get(file, name, GetOptions { range, ..GetOptions::default() }).await?;
    let truncated = |actual_bytes| ReadError::Truncated {
        file: Arc::clone(name),
        offset: whole.start,
        expected_bytes: whole.end - whole.start,
        actual_bytes,
    };
    if result.range != whole {
        return Err(truncated(result.range.end.saturating_sub(result.range.start)));
    }
    let body = split_body(result, ranges).await.map_err(|error| from_store(name, error))?;
    let body_bytes = body.total_bytes;
    body.into_pages().ok_or_else(|| truncated(body_bytes))
}

/// Asks for something of a file on condition that it is the one that was listed.
async fn get(
    file: &TableFile,
    name: &Arc<str>,
    options: GetOptions,
) -> Result<GetResult, ReadError> {
    // A weak entity tag (RFC 9110 §8.8.1) never satisfies If-Match.
    let strong_tag = file.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
    let options = GetOptions {
        if_unmodified_since: strong_tag.is_none().then_some(file.meta.last_modified),
        if_match: strong_tag,
        ..options
    };
    let result = file.store.get_opts(&file.meta.location, options).await;
    let result = result.map_err(|error| from_store(name, error))?;
    // Not every store honours the conditions.
    if is_same(&file.meta, &result.meta) {
        Ok(result)
    } else {
        Err(ReadError::Changed { file: Arc::clone(name) })
    }
}

/// Whether both describe the same bytes. Times are compared where there are no entity tags, and by the second where
/// one of them has no finer part: HTTP headers do not, while listings may.
fn is_same(opened: &ObjectMeta, found: &ObjectMeta) -> bool {
    if opened.size != found.size {
        return false;
    }
    if let (Some(opened), Some(found)) = (&opened.e_tag, &found.e_tag) {
        return opened == found;
    }
    let (opened, found) = (opened.last_modified, found.last_modified);
    let is_coarse = opened.timestamp_subsec_nanos() == 0 || found.timestamp_subsec_nanos() == 0;
    if is_coarse { opened.timestamp() == found.timestamp() } else { opened == found }
}

fn from_store(name: &Arc<str>, error: StoreError) -> ReadError {
    let file = Arc::clone(name);
    match error {
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            ReadError::Changed { file }
        }
        StoreError::NotFound { .. } => ReadError::Missing { file },
        error => ReadError::Store { file, source: Arc::new(error) },
    }
}
