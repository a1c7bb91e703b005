//! Local files as an object store, read past the operating system's cache.

use std::future::ready;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, ObjectMeta, ObjectStore,
    Result,
};

use super::delegate::object_store_by_reads;
use super::direct_file::{DirectAccess, DirectFile};
use super::direct_reads::{Reads, STORE_NAME, generic};
use super::local_device::{LocalDevice, devices};
use super::ranges::{cut, merge};

/// Requests of one `get_ranges` call that are read at the same time: enough to keep a disk busy.
const READS_AT_ONCE: usize = 8;

/// Whole files are streamed in pieces of this size, so that a file need not fit in memory.
const PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// The number of files of a listing that wait for its reader.
const LISTED_AT_A_TIME: usize = 1024;

/// Local files, read past the operating system's cache (`O_DIRECT` on Linux).
///
/// coscan's pool decides what stays in memory. A second copy in the operating system's cache would cost memory and
/// hide the disk from measurements.
///
/// - A request for a range is one positional read on a blocking thread; its bytes are not copied. A bounded number of
///   threads waits for each device. While one hangs, such as a network mount, reads of other devices continue. Its own
///   reads fail after 24 s without any answer, and one every 6 s asks again.
/// - A request without a range, or from an offset to the end, is streamed in pieces of 8 MiB.
/// - `get_ranges` joins ranges up to [`COALESCE_GAP_BYTES`](super::COALESCE_GAP_BYTES) apart and reads eight at once.
///   A range that reaches past the end of the file is an error there, as in [`LocalFileSystem`].
/// - Conditions in [`GetOptions`] are checked against the file as it is now, and the bytes are those of the file that
///   was checked: one that is overwritten meanwhile is an error. Entity tags agree with [`LocalFileSystem`].
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

    /// Runs an operation of the local file system on a thread of the device of a file.
    async fn run<T: Send + 'static, F>(
        &self,
        location: &Path,
        operation: impl FnOnce(LocalFileSystem) -> F,
    ) -> Result<(Arc<LocalDevice>, T)>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let path = self.local.path_to_filesystem(location)?;
        let device = devices().of(&path).await.map_err(generic)?;
        let operation = operation(self.local.clone());
        let result = device.run(&path, operation).await.map_err(generic)??;
        Ok((device, result))
    }

    async fn open(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> Result<(GetResult, Arc<LocalDevice>)> {
        let file = location.clone();
        let get = move |local: LocalFileSystem| async move { local.get_opts(&file, options).await };
        let (device, result) = self.run(location, get).await?;
        Ok((result, device))
    }

    /// Reads of the file that was opened.
    fn reads(
        &self,
        result: GetResult,
        device: Arc<LocalDevice>,
        is_conditional: bool,
    ) -> Result<Reads> {
        let (file, path) = opened_file(result.payload)?;
        let file = Arc::new(DirectFile::new(file, path.clone()));
        let meta = is_conditional.then_some(result.meta);
        Ok(Reads { file, path, access: Arc::clone(&self.access), device, meta })
    }

    /// A listing, without waiting in the caller's threads.
    fn list_in_background(
        &self,
        prefix: Option<&Path>,
        list: impl FnOnce(LocalFileSystem) -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let listing = async move {
            let path = store.local.path_to_filesystem(&prefix.clone().join("*"))?;
            let device = devices().of(&path).await.map_err(generic)?;
            let (sender, receiver) = mpsc::channel(LISTED_AT_A_TIME);
            let (files, answering) = (list(store.local.clone()), Arc::clone(&device));
            let sending = async move {
                let files = files.inspect(|_| answering.answers());
                // The listing may have been dropped.
                let _ = files.map(Ok).forward(sender).await;
            };
            let run = async move { device.run(&path, sending).await.err().map(generic) };
            // An error of the device comes after the files that were listed before.
            let end = stream::once(run).filter_map(|error| ready(error.map(Err)));
            Ok::<_, Error>(stream::select(receiver, end))
        };
        stream::once(listing).try_flatten().boxed()
    }

    fn inner(&self) -> &LocalFileSystem {
        &self.local
    }

    async fn read(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let in_one_piece =
            matches!(options.range, Some(GetRange::Bounded(_) | GetRange::Suffix(_)));
        let is_conditional = options.if_match.is_some() || options.if_unmodified_since.is_some();
        let (result, device) = self.open(location, options).await?;
        if is_head {
            return Ok(result);
        }
        let (meta, range, attributes) =
            (result.meta.clone(), result.range.clone(), result.attributes.clone());
        let reads = self.reads(result, device, is_conditional)?;
        let piece_bytes = if in_one_piece { u64::MAX } else { PIECE_BYTES };
        let content = stream::iter(pieces(range.clone(), piece_bytes))
            .then(move |piece| reads.clone().read(piece))
            .boxed();
        Ok(GetResult { payload: GetResultPayload::Stream(content), meta, range, attributes })
    }

    async fn read_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (result, device) = self.open(location, GetOptions::default()).await?;
        let requests = merge(ranges);
        check_within(&requests, &result.meta)?;
        let reads = self.reads(result, device, false)?;
        let answers: Vec<Bytes> = stream::iter(requests.clone())
            .map(|range| reads.clone().read(range))
            .buffered(READS_AT_ONCE)
            .try_collect()
            .await?;
        Ok(cut(ranges, &requests, &answers))
    }
}

object_store_by_reads!(DirectFileStore, listed by {
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let below = prefix.cloned();
        self.list_in_background(prefix, move |local| local.list(below.as_ref()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let below = prefix.cloned();
        let inside = below.clone().unwrap_or_default().join("*");
        let list = move |local: LocalFileSystem| async move {
            local.list_with_delimiter(below.as_ref()).await
        };
        Ok(self.run(&inside, list).await?.1)
    }
});

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
