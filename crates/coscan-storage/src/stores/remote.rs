//! Stores across the network, whose errors name the source of the credentials and show no secrets.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result,
};

use super::credential_errors::Credentials;

/// A store that was built for a URL. `Debug` and `Display` show only the URL of its root.
pub(super) struct RemoteStore {
    root: String,
    inner: Arc<dyn ObjectStore>,
    credentials: Arc<Credentials>,
}

impl RemoteStore {
    pub(super) fn new(root: &str, inner: Arc<dyn ObjectStore>, credentials: Credentials) -> Self {
        Self { root: root.to_owned(), inner, credentials: Arc::new(credentials) }
    }

    /// Explains errors. The closure owns its state, as streams outlive the call.
    fn explain(&self) -> impl Fn(Error) -> Error + Clone + Send + 'static {
        let credentials = Arc::clone(&self.credentials);
        move |error| credentials.explain(error)
    }
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteStore({})", self.root)
    }
}

impl fmt::Display for RemoteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.root)
    }
}

#[async_trait]
impl ObjectStore for RemoteStore {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut result = self.inner.get_opts(location, options).await.map_err(self.explain())?;
        if let GetResultPayload::Stream(stream) = result.payload {
            result.payload = GetResultPayload::Stream(stream.map_err(self.explain()).boxed());
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await.map_err(self.explain())
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await.map_err(self.explain())
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await.map_err(self.explain())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations).map_err(self.explain()).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix).map_err(self.explain()).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset).map_err(self.explain()).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await.map_err(self.explain())
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await.map_err(self.explain())
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await.map_err(self.explain())
    }
}
