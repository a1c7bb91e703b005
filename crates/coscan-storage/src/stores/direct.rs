//! Local files as an object store, read past the operating system's cache.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta, ObjectStore, Result,
};

use super::delegate::object_store_by_reads;
use super::direct_file::{DirectAccess, DirectFile};
use super::ranges::{cut, merge};

const STORE_NAME: &str = "DirectFileStore";

/// Requests of one `get_ranges` call that are read at the same time: enough to keep a disk busy.
const READS_AT_ONCE: usize = 8;

/// Whole files are streamed in pieces of this size, so that a file need not fit in memory.
const PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// Local files, read past the operating system's cache (`O_DIRECT` on Linux).
///
/// coscan's pool decides what stays in memory. A second copy in the operating system's cache would cost memory and
/// hide the disk from measurements.
///
/// - A request for a range is one positional read on a blocking thread; its bytes are not copied.
/// - A request without a range, or from an offset to the end, is streamed in pieces of 8 MiB.
/// - `get_ranges` joins ranges up to [`COALESCE_GAP_BYTES`](super::COALESCE_GAP_BYTES) apart and reads eight at once.
///   A range that reaches past the end of the file is an error there, as in [`LocalFileSystem`].
/// - Conditions in [`GetOptions`] are checked against the file as it is now, and the bytes are those of the file that
///   was checked. Entity tags agree with [`LocalFileSystem`].
/// - Where the file system or the platform refuses direct reads, files are read through the cache, with one logged
///   warning per store.
///
/// Writing and listing are [`LocalFileSystem`]'s. Clones share their state.
#[derive(Debug, Clone)]
pub struct DirectFileStore {
    local: LocalFileSystem,
    access: Arc<DirectAccess>,
}

impl Default for DirectFileStore {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for DirectFileStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{STORE_NAME}({})", self.local)
    }
}

impl DirectFileStore {
    /// All files of this machine: the path in the store is the absolute path of the file.
    pub fn new() -> Self {
        Self { local: LocalFileSystem::new(), access: Arc::new(DirectAccess::new()) }
    }

    /// The files below the directory `prefix`, by their path relative to it.
    ///
    /// # Errors
    /// If `prefix` does not exist.
    pub fn new_with_prefix(prefix: impl AsRef<std::path::Path>) -> Result<Self> {
        let local = LocalFileSystem::new_with_prefix(prefix)?;
        Ok(Self { local, access: Arc::new(DirectAccess::new()) })
    }

    fn inner(&self) -> &LocalFileSystem {
        &self.local
    }

    async fn read(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            return self.local.get_opts(location, options).await;
        }
        let in_one_piece =
            matches!(options.range, Some(GetRange::Bounded(_) | GetRange::Suffix(_)));
        let result = self.local.get_opts(location, options).await?;
        let GetResult { payload, meta, range, attributes } = result;
        let (file, path) = opened_file(payload)?;

        let piece_bytes = if in_one_piece { u64::MAX } else { PIECE_BYTES };
        let file = Arc::new(DirectFile::new(file, path));
        let access = Arc::clone(&self.access);
        let content = stream::iter(pieces(range.clone(), piece_bytes))
            .then(move |piece| read_in_background(Arc::clone(&file), Arc::clone(&access), piece))
            .boxed();
        Ok(GetResult { payload: GetResultPayload::Stream(content), meta, range, attributes })
    }

    async fn read_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let result = self.local.get_opts(location, GetOptions::default()).await?;
        let requests = merge(ranges);
        check_within(&requests, &result.meta)?;
        let (file, path) = opened_file(result.payload)?;
        let file = Arc::new(DirectFile::new(file, path));

        let answers: Vec<Bytes> = stream::iter(requests.clone())
            .map(|range| read_in_background(Arc::clone(&file), Arc::clone(&self.access), range))
            .buffered(READS_AT_ONCE)
            .try_collect()
            .await?;
        Ok(cut(ranges, &requests, &answers))
    }
}

object_store_by_reads!(DirectFileStore);

/// The descriptor whose metadata [`LocalFileSystem`] checked.
fn opened_file(payload: GetResultPayload) -> Result<(std::fs::File, PathBuf)> {
    match payload {
        GetResultPayload::File(file, path) => Ok((file, path)),
        GetResultPayload::Stream(_) => Err(generic("the local file system gave no file")),
    }
}

/// Splits `range` into pieces of `piece_bytes`; the last one may be shorter.
fn pieces(range: Range<u64>, piece_bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let piece = start..start.saturating_add(piece_bytes).min(range.end);
        start = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}

fn check_within(requests: &[Range<u64>], meta: &ObjectMeta) -> Result<()> {
    match requests.last() {
        Some(last) if last.end > meta.size => Err(generic(format!(
            "{} has {} bytes, but bytes {} to {} were asked for",
            meta.location, meta.size, last.start, last.end
        ))),
        _ => Ok(()),
    }
}

async fn read_in_background(
    file: Arc<DirectFile>,
    access: Arc<DirectAccess>,
    range: Range<u64>,
) -> Result<Bytes> {
    let read = move || file.read(range, &access).map_err(generic);
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(read).await?,
        // Like `LocalFileSystem`: without tokio there is no other thread to wait on.
        Err(_) => read(),
    }
}

fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: STORE_NAME, source: source.into() }
}
