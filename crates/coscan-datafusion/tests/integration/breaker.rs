//! Tables at addresses in brackets, and tables whose store no longer lists them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coscan_datafusion::{CoscanOptions, enable_url_table};
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::Stores;
use futures::future::join_all;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::support::s3::S3Server;
use crate::support::{TABLE_OPTIONS, manager, plain, run, slt, write_numbers};

fn file(rows: i64) -> Vec<u8> {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("f.parquet");
    write_numbers(&path, 0..rows);
    std::fs::read(path).unwrap()
}

/// The brackets of an IPv6 address are not a pattern.
#[tokio::test]
async fn a_table_is_at_an_address_in_brackets() {
    let server = S3Server::start_at("[::1]:0", file(300));
    let manager = manager(PolicyKind::Relevance);
    let context = enable_url_table(plain());
    CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).install(&context).unwrap();
    let url = server.http();
    assert!(url.contains("[::1]"), "{url}");
    run(&context, &format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{url}'")).await;
    assert_eq!(run(&context, "SELECT sum(id + 0) FROM t").await, ["44850"]);
    assert_eq!(run(&context, &format!("SELECT sum(id + 0) FROM '{url}'")).await, ["44850"]);
    let missing = format!("SELECT * FROM '{}'", url.replace("1.parquet", "2.parquet"));
    let error = slt::run(&context, &missing).await.unwrap_err().to_string();
    assert!(!error.contains("pattern"), "{error}");
}

/// A store that lists nothing once it is down, after a second of its clock.
#[derive(Debug, Default)]
struct Unlisted {
    files: InMemory,
    is_down: AtomicBool,
    asked: AtomicUsize,
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unlisted")
    }
}

#[async_trait]
impl ObjectStore for Unlisted {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.files.put_opts(location, payload, options).await
    }
    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(location, options).await
    }
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }
    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if !self.is_down.load(Ordering::Relaxed) {
            return self.files.list(prefix);
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        let failed = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(Error::Generic { store: "Unlisted", source: "it is down".into() })
        };
        stream::once(failed).boxed()
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

/// Queries that find the list of files outdated do not wait one after the other for a store that is down.
#[tokio::test]
async fn queries_at_the_same_time_try_once_to_list_files_again() {
    let store = Arc::new(Unlisted::default());
    store.files.put(&Path::from("t/1.parquet"), file(300).into()).await.unwrap();
    let stores = Stores::new();
    stores.register(&"mem://b/".parse().unwrap(), Arc::clone(&store) as _);
    let manager = manager(PolicyKind::Relevance);
    let context = plain();
    let coscan = CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).with_stores(stores);
    coscan.install(&context).unwrap();
    run(&context, "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mem://b/t/'").await;
    run(&context, "SET coscan.refresh_interval = '0s'").await;
    store.is_down.store(true, Ordering::Relaxed);
    let queries = (0..8).map(|_| run(&context, "SELECT sum(id + 0) FROM t"));
    for answer in join_all(queries).await {
        assert_eq!(answer, ["44850"]);
    }
    let asked = store.asked.swap(0, Ordering::Relaxed);
    run(&context, "SELECT sum(id + 0) FROM t").await;
    // Queries that asked when the first had begun to list files may wait for the second.
    let alone = store.asked.load(Ordering::Relaxed);
    assert!(asked <= 2 * alone, "{asked} times, and {alone} for one query");
}
