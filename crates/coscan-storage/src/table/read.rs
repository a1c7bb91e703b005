//! Reads ranges of a file, each on condition that it is still the file that was listed.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{Error as StoreError, GetOptions, GetRange, GetResult, ObjectMeta};

use super::body::split_body;
use super::{ReadError, TableFile};

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
    /// Reads a range of the file, in bytes, on condition that the file is unchanged since it was listed.
    ///
    /// # Errors
    /// If it has changed, is gone or too short, or its store fails.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes, ReadError> {
        read_range(self, &self.name().into(), range).await
    }

    /// Reads ranges of the file, ascending and without overlap, in one request. Each result has its own allocation.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, ReadError> {
        read_ranges(self, &self.name().into(), ranges).await
    }

    /// Asks the store whether the file is unchanged since it was listed, without reading it.
    ///
    /// # Errors
    /// If it has changed or is gone, or its store fails.
    pub async fn check(&self) -> Result<(), ReadError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        get(self, &self.name().into(), options).await.map(drop)
    }
}

/// Reads ranges of a file, ascending and without overlap, in one request.
pub(super) async fn read_ranges(
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

/// A request to the store, on condition that the file is unchanged since it was listed.
async fn get(
    file: &TableFile,
    name: &Arc<str>,
    options: GetOptions,
) -> Result<GetResult, ReadError> {
    // A weak entity tag never satisfies If-Match (RFC 9110 §8.8.1).
    let strong_tag = file.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
    let options = GetOptions {
        if_unmodified_since: strong_tag.is_none().then_some(file.meta.last_modified),
        if_match: strong_tag,
        ..options
    };
    let result = file.store.get_opts(&file.meta.location, options).await;
    let result = result.map_err(|error| from_store(name, error))?;
    // Some stores ignore the conditions.
    if is_same(&file.meta, &result.meta) {
        Ok(result)
    } else {
        Err(ReadError::Changed { file: Arc::clone(name) })
    }
}

/// Whether both describe the same bytes. Without entity tags times are compared, in seconds if one of them has no
/// finer part: HTTP headers have none, listings may.
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

pub(super) fn from_store(name: &Arc<str>, error: StoreError) -> ReadError {
    let file = Arc::clone(name);
    match error {
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            ReadError::Changed { file }
        }
        StoreError::NotFound { .. } => ReadError::Missing { file },
        error => ReadError::Store { file, source: Arc::new(error) },
    }
}
