//! A store whose reads have the results that a test chooses.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use tokio::sync::watch;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answer,
    Fail,
    /// There is no answer, ever.
    Hang,
    Panic,
    /// The answer is one byte too short.
    Short,
}

/// Holds up reads while it is closed.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub(crate) fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub(crate) fn opened() -> Self {
        Self(Arc::new(watch::Sender::new(true)))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn close(&self) {
        self.0.send_replace(false);
    }

    async fn passed(&self) {
        self.0.subscribe().wait_for(|is_open| *is_open).await.expect("the sender is here");
    }
}

type Judge = dyn Fn(&Range<u64>) -> Fate + Send + Sync;

/// A store for reading in which every read has a fate.
pub(crate) struct FatedStore {
    inner: Arc<dyn ObjectStore>,
    gate: Gate,
    judge: Arc<Judge>,
}

impl FatedStore {
    pub(crate) fn wrap(
        inner: Arc<dyn ObjectStore>,
        judge: impl Fn(&Range<u64>) -> Fate + Send + Sync + 'static,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(Self { inner, gate: Gate::opened(), judge: Arc::new(judge) })
    }

    /// A store that answers reads while the gate is open.
    pub(crate) fn gated(inner: Arc<dyn ObjectStore>, gate: &Gate) -> Arc<dyn ObjectStore> {
        Arc::new(Self { inner, gate: gate.clone(), judge: Arc::new(|_| Fate::Answer) })
    }
}

impl fmt::Debug for FatedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FatedStore")
    }
}

impl fmt::Display for FatedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FatedStore")
    }
}

#[async_trait::async_trait]
impl ObjectStore for FatedStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.gate.passed().await;
        let Some(GetRange::Bounded(range)) = options.range.clone() else {
            return self.inner.get_opts(location, options).await;
        };
        let fate = (self.judge)(&range);
        match fate {
            Fate::Fail => {
                return Err(Error::Generic { store: "FatedStore", source: "it is broken".into() });
            }
            Fate::Hang => std::future::pending().await,
            Fate::Panic => panic!("the store panics on purpose"),
            Fate::Answer | Fate::Short => {}
        }
        let result = self.inner.get_opts(location, options).await?;
        if fate == Fate::Answer {
            return Ok(result);
        }
        let (meta, range) = (result.meta.clone(), result.range.clone());
        let attributes = result.attributes.clone();
        let bytes = result.bytes().await?;
        let body = stream::once(async move { Ok(bytes.slice(..bytes.len() - 1)) }).boxed();
        Ok(GetResult { payload: GetResultPayload::Stream(body), meta, range, attributes })
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        unreachable!("tables are only read")
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("tables are only read")
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        unreachable!("tables are only read")
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        unreachable!("tables are only read")
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("tables are only read")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("tables are only read")
    }
}
