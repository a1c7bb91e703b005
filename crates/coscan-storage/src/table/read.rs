//! Reads pages as they are stored: neighbours in one request, every request on condition that the file is still the
//! one that was opened.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{Index, PageIndex};
use futures::{StreamExt, stream};
use object_store::{Error as StoreError, GetOptions, GetRange, GetResult, ObjectMeta};

use super::body::split_body;
use super::{ParquetTable, ReadError, TableFile};

/// Pages that lie closer than this are read together: on object stores and disks alike a request costs more.
const GAP_BYTES_MAX: u64 = 64 * 1024;
/// Requests that several pages share do not grow beyond this, so that they run side by side.
const REQUEST_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Requests of one call that are under way at the same time.
const REQUESTS_AT_A_TIME: usize = 16;

impl ParquetTable {
    /// Reads pages as they are stored, one result a page and in the order asked for. Pages of a file that lie close
    /// together are read in one request; if it fails, only they fail.
    ///
    /// Each page has its own allocation, so that dropping it frees its memory.
    ///
    /// # Panics
    /// If there is no such page.
    pub async fn read_pages(&self, pages: &[PageIndex]) -> Vec<Result<Bytes, ReadError>> {
        let requests: Vec<_> = self
            .requests(pages)
            .into_iter()
            .map(|request| async move {
                let file = &self.table_files[request.file];
                let read = read_ranges(file, &self.files[request.file].name, &request.ranges).await;
                (request, read)
            })
            .collect();
        let mut found = BTreeMap::new();
        let mut requests = stream::iter(requests).buffer_unordered(REQUESTS_AT_A_TIME);
        while let Some((request, read)) = requests.next().await {
            for (position, page) in request.pages.iter().enumerate() {
                let bytes = read.as_ref().map(|read| read[position].clone());
                found.insert(*page, bytes.map_err(Clone::clone));
            }
        }
        let find =
            |page: &PageIndex| found.get(page).cloned().expect("every page is in one request");
        pages.iter().map(find).collect()
    }

    /// The requests that read these pages, each page once.
    fn requests(&self, pages: &[PageIndex]) -> Vec<Request> {
        let mut sorted = pages.to_vec();
        sorted.sort_unstable_by_key(|page| {
            let stored = &self.pages[page.as_usize()];
            (stored.file, stored.bytes.start, *page)
        });
        sorted.dedup();
        let mut requests: Vec<Request> = Vec::new();
        for page in sorted {
            let stored = &self.pages[page.as_usize()];
            match requests.last_mut() {
                Some(last) if last.file == stored.file && last.can_take(&stored.bytes) => {
                    last.ranges.push(stored.bytes.clone());
                    last.pages.push(page);
                }
                _ => requests.push(Request {
                    file: stored.file,
                    ranges: vec![stored.bytes.clone()],
                    pages: vec![page],
                }),
            }
        }
        requests
    }
}

/// Pages of one file that are read together.
struct Request {
    file: usize,
    /// Ascending, without overlap.
    ranges: Vec<Range<u64>>,
    /// The page that each range is.
    pages: Vec<PageIndex>,
}

impl Request {
    fn can_take(&self, range: &Range<u64>) -> bool {
        let (start, end) = (self.ranges[0].start, self.ranges[self.ranges.len() - 1].end);
        let is_near = range.start >= end && range.start - end <= GAP_BYTES_MAX;
        is_near && range.end - start <= REQUEST_BYTES_MAX
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
    let result = get(file, name, whole.clone()).await?;
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

/// Starts a read on condition that the file is the one that was listed.
async fn get(file: &TableFile, name: &Arc<str>, range: Range<u64>) -> Result<GetResult, ReadError> {
    // A weak entity tag (RFC 9110 §8.8.1) never satisfies If-Match.
    let strong_tag = file.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
    let options = GetOptions {
        range: Some(GetRange::Bounded(range)),
        if_unmodified_since: strong_tag.is_none().then_some(file.meta.last_modified),
        if_match: strong_tag,
        ..GetOptions::default()
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
