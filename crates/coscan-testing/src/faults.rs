//! Stores whose reads have the results that a test chooses.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};
use tokio::sync::watch;

/// The result of a read.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// The answer of the store.
    Answer,
    /// An error.
    Fail,
    /// No answer, ever.
    Hang,
    /// A panic.
    Panic,
    /// An answer that is one byte too short.
    Short,
    /// An answer that differs from that of the store.
    Changed(fn(&mut GetResult)),
}

/// The fate of a read, by the bytes that it asks for.
type Judge = dyn Fn(&Range<u64>) -> Fate + Send + Sync;

/// The faults of the stores that they are put [around](Self::around). Clones are one and the same.
///
/// Reads are judged by the bytes that they ask for; those for metadata ask for none. Each range of `get_ranges` is a
/// read.
#[derive(Clone)]
pub struct Faults(Arc<State>);

struct State {
    judge: Mutex<Arc<Judge>>,
    is_open: watch::Sender<bool>,
    reads: Mutex<Vec<GetOptions>>,
    /// Listings fail after this time.
    listings_fail_after: Mutex<Option<Duration>>,
    failed_listings: AtomicUsize,
}

impl Default for Faults {
    fn default() -> Self {
        Self::new(|_| Fate::Answer)
    }
}

impl Faults {
    /// Faults with which each read has the fate that `judge` gives to the bytes that it asks for.
    pub fn new(judge: impl Fn(&Range<u64>) -> Fate + Send + Sync + 'static) -> Self {
        Self(Arc::new(State {
            judge: Mutex::new(Arc::new(judge)),
            is_open: watch::Sender::new(true),
            reads: Mutex::default(),
            listings_fail_after: Mutex::default(),
            failed_listings: AtomicUsize::new(0),
        }))
    }

    /// The store with these faults.
    pub fn around(&self, inner: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(FaultyStore { inner, faults: self.clone() })
    }

    /// Gives reads other fates from now on.
    pub fn judge(&self, judge: impl Fn(&Range<u64>) -> Fate + Send + Sync + 'static) {
        *self.0.judge.lock().unwrap() = Arc::new(judge);
    }

    /// Gives all reads this fate from now on.
    pub fn all(&self, fate: Fate) {
        self.judge(move |_| fate);
    }

    /// Holds up reads until [`open`](Self::open).
    pub fn close(&self) {
        self.0.is_open.send_replace(false);
    }

    /// Lets reads through.
    pub fn open(&self) {
        self.0.is_open.send_replace(true);
    }

    /// Takes the reads since the last call.
    pub fn take_reads(&self) -> Vec<GetOptions> {
        std::mem::take(&mut *self.0.reads.lock().unwrap())
    }

    /// Makes listings fail after some time.
    pub fn fail_listings(&self, after: Duration) {
        *self.0.listings_fail_after.lock().unwrap() = Some(after);
    }

    /// The number of listings that failed.
    pub fn failed_listings(&self) -> usize {
        self.0.failed_listings.load(Ordering::Relaxed)
    }
}

fn failure() -> Error {
    Error::Generic { store: "FaultyStore", source: "it fails on purpose".into() }
}

/// The bytes that a read asks for.
fn bytes_asked(options: &GetOptions) -> Range<u64> {
    match options.range.clone() {
        _ if options.head => 0..0,
        None => 0..u64::MAX,
        Some(GetRange::Bounded(range)) => range,
        Some(GetRange::Offset(start)) => start..u64::MAX,
        Some(GetRange::Suffix(bytes)) => u64::MAX - bytes..u64::MAX,
    }
}

async fn shortened(result: GetResult) -> Result<GetResult> {
    let (meta, range) = (result.meta.clone(), result.range.clone());
    let attributes = result.attributes.clone();
    let bytes = result.bytes().await?;
    let short = stream::iter([Ok(bytes.slice(..bytes.len().saturating_sub(1)))]);
    Ok(GetResult { payload: GetResultPayload::Stream(short.boxed()), meta, range, attributes })
}

struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    faults: Faults,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let State { judge, is_open, reads, .. } = &*self.faults.0;
        reads.lock().unwrap().push(options.clone());
        is_open.subscribe().wait_for(|is_open| *is_open).await.expect("the sender is here");
        let judge = Arc::clone(&judge.lock().unwrap());
        let fate = judge(&bytes_asked(&options));
        match fate {
            Fate::Fail => return Err(failure()),
            Fate::Hang => std::future::pending().await,
            Fate::Panic => panic!("the store panics on purpose"),
            Fate::Answer | Fate::Short | Fate::Changed(_) => {}
        }
        let mut result = self.inner.get_opts(location, options).await?;
        match fate {
            Fate::Short => result = shortened(result).await?,
            Fate::Changed(change) => change(&mut result),
            _ => {}
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let reads = ranges.iter().map(|range| self.get_range(location, range.clone()));
        futures::future::try_join_all(reads).await
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let Some(after) = *self.faults.0.listings_fail_after.lock().unwrap() else {
            return self.inner.list(prefix);
        };
        self.faults.0.failed_listings.fetch_add(1, Ordering::Relaxed);
        let failed = async move {
            tokio::time::sleep(after).await;
            Err(failure())
        };
        stream::once(failed).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn reads_have_the_fates_that_are_chosen() {
        let file = Path::from("file");
        let faults = Faults::default();
        let store = faults.around(Arc::new(InMemory::new()));
        store.put(&file, vec![1, 2, 3].into()).await.unwrap();
        let read = || store.get_range(&file, 0..3);
        assert_eq!(read().await.unwrap(), [1, 2, 3][..]);
        faults.all(Fate::Fail);
        assert!(read().await.unwrap_err().to_string().contains("fails on purpose"));
        store.head(&file).await.unwrap_err();
        faults.all(Fate::Short);
        assert_eq!(read().await.unwrap(), [1, 2][..]);
        faults.all(Fate::Changed(|result| result.meta.size = 7));
        assert_eq!(store.head(&file).await.unwrap().size, 7);
        faults.all(Fate::Hang);
        assert!(read().now_or_never().is_none());
        faults.judge(|range| if range.contains(&2) { Fate::Fail } else { Fate::Answer });
        assert_eq!(store.get_range(&file, 0..2).await.unwrap(), [1, 2][..]);
        assert_eq!(faults.take_reads().len(), 7);
        // One of the ranges is enough to fail a call.
        store.get_ranges(&file, &[0..1, 1..2, 2..3]).await.unwrap_err();
        assert_eq!(faults.take_reads().len(), 3);
        faults.close();
        assert!(store.get_range(&file, 0..2).now_or_never().is_none());
        faults.open();
        store.get_range(&file, 0..2).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn listings_fail_late() {
        let faults = Faults::default();
        let store = faults.around(Arc::new(InMemory::new()));
        assert!(store.list(None).next().await.is_none());
        let (started, after) = (tokio::time::Instant::now(), Duration::from_secs(3));
        faults.fail_listings(after);
        store.list(None).next().await.unwrap().unwrap_err();
        assert_eq!((started.elapsed(), faults.failed_listings()), (after, 1));
    }
}
