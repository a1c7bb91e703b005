//! Workers in this process, each with a manager of its own, connected by channels in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coscan_datafusion::{CoscanOptions, SharedMemoryPool};
use coscan_distributed::{
    Coordinator, CoordinatorOptions, NotDistributed, QueryDescription, WorkerList, WorkerOptions,
    worker,
};
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{DirectFileStore, MeteredStore, StoreMetrics, Stores};
use coscan_storage::table::FileOptions;
use datafusion::arrow::array::RecordBatch;
use datafusion::config::Dialect;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::prelude::SessionContext;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, Worker, WorkerChannel, WorkerResolver};
use futures::TryStreamExt;
use hyper_util::rt::TokioIo;
use tonic::transport::{Endpoint, Server};
use url::Url;

use crate::data::ROW_GROUP_ROWS;

/// A worker of a test.
pub(crate) struct TestWorker {
    pub(crate) manager: BufferManager,
    /// What it has read from the store.
    pub(crate) reads: Arc<StoreMetrics>,
}

/// Workers, and a coordinator that is none of them.
pub(crate) struct TestCluster {
    pub(crate) workers: Vec<TestWorker>,
    pub(crate) coordinator: Coordinator,
    pub(crate) coscan: CoscanOptions,
}

/// The options of a test's workers.
#[derive(Clone)]
pub(crate) struct TestOptions {
    pub(crate) workers: usize,
    pub(crate) manager: Options,
    pub(crate) chunk_rows: u64,
    pub(crate) divided_bytes_min: u64,
    pub(crate) alone_timeout: Duration,
    /// The prefix of the files that workers may read.
    pub(crate) readable: String,
}

impl TestOptions {
    /// Workers for the tables of tests, all of which they divide.
    pub(crate) fn small(workers: usize) -> Self {
        Self {
            workers,
            manager: Options::with_memory_bytes(512 << 20),
            chunk_rows: ROW_GROUP_ROWS,
            divided_bytes_min: 0,
            alone_timeout: CoordinatorOptions::default().alone_timeout,
            readable: "file:///".to_owned(),
        }
    }
}

impl TestCluster {
    pub(crate) fn start(options: &TestOptions) -> Self {
        Self::start_with(options, |_| Ok(()))
    }

    /// Workers that know some functions.
    pub(crate) fn start_with(
        options: &TestOptions,
        register_functions: fn(&mut SessionState) -> Result<()>,
    ) -> Self {
        let channels = Channels::default();
        let mut workers = Vec::new();
        for index in 0..options.workers {
            let (coscan, reads) = coscan(options);
            workers.push(TestWorker { manager: coscan.manager().clone(), reads });
            let connected = Arc::new(channels.clone());
            let worker = worker_of(options, coscan, connected, register_functions);
            channels.connect(url(index), worker);
        }
        let names: Vec<_> = (0..options.workers).map(url).collect();
        let coordinator = Coordinator::new(
            CoordinatorOptions {
                divided_bytes_min: options.divided_bytes_min,
                alone_timeout: options.alone_timeout,
                ..CoordinatorOptions::default()
            },
            Arc::new(Names(names)),
            Arc::new(channels),
        );
        Self { workers, coordinator, coscan: coscan(options).0 }
    }

    /// The rows of a query over the workers.
    pub(crate) async fn query(
        &self,
        session: &SessionContext,
        sql: &str,
    ) -> Result<Vec<RecordBatch>> {
        let state = session.state();
        let statement = state.sql_to_statement(sql, &Dialect::Generic)?;
        let statement = state.statement_to_plan(statement).await?;
        let rows = self
            .coordinator
            .execute(&state, &statement, &QueryDescription::default(), &|state| {
                TaskContext::from(state)
            })
            .await?;
        rows.try_collect().await
    }
}

impl TestCluster {
    /// Whether workers execute a query.
    pub(crate) async fn distributes(&self, session: &SessionContext, sql: &str) -> bool {
        let state = session.state();
        let Ok(statement) = state.create_logical_plan(sql).await else { return false };
        self.coordinator.plan(&state, &statement, &QueryDescription::default()).await.is_ok()
    }

    /// The rows of a query over the workers, or of its coordinator if it is not to be distributed.
    pub(crate) async fn query_anywhere(
        &self,
        session: &SessionContext,
        sql: &str,
    ) -> Result<Vec<RecordBatch>> {
        match self.query(session, sql).await {
            Err(error) if NotDistributed::of(&error).is_some() => {
                session.sql(sql).await?.collect().await
            }
            rows => rows,
        }
    }
}

/// A worker that is connected to others by `channels`.
pub(crate) fn test_worker(
    options: &TestOptions,
    channels: Arc<dyn ChannelResolver + Send + Sync>,
) -> Worker {
    worker_of(options, coscan(options).0, channels, |_| Ok(()))
}

fn worker_of(
    options: &TestOptions,
    coscan: CoscanOptions,
    channels: Arc<dyn ChannelResolver + Send + Sync>,
    register_functions: fn(&mut SessionState) -> Result<()>,
) -> Worker {
    let memory = SharedMemoryPool::of_manager(coscan.manager());
    worker(WorkerOptions {
        coscan,
        runtime: Arc::default(),
        make_memory_pool: Arc::new(move |_| Arc::clone(&memory)),
        channels,
        register_functions: Arc::new(register_functions),
        stores: vec![Url::parse(&options.readable).unwrap()].into(),
    })
}

/// A manager, and what is read through it.
pub(crate) fn coscan(options: &TestOptions) -> (CoscanOptions, Arc<StoreMetrics>) {
    let manager = BufferManager::new(options.manager.clone()).unwrap();
    let reads = StoreMetrics::with_log();
    let store = MeteredStore::new(Arc::new(DirectFileStore::default()), Arc::clone(&reads));
    let stores = Stores::new();
    stores.register(&Url::parse("file:///").unwrap(), Arc::new(store));
    let table_options = FileOptions { chunk_rows: options.chunk_rows, ..FileOptions::default() };
    let coscan = CoscanOptions::new(&manager).with_stores(stores).with_table_options(table_options);
    (coscan.with_direct_bytes_max(0), reads)
}

fn url(index: usize) -> Url {
    Url::parse(&format!("http://worker-{index}")).unwrap()
}

struct Names(Vec<Url>);

#[async_trait]
impl WorkerList for Names {
    async fn refresh(&self) {}
}

impl WorkerResolver for Names {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        Ok(self.0.clone())
    }
}

/// The connections to the workers.
#[derive(Clone, Default)]
struct Channels(Arc<std::sync::Mutex<BTreeMap<Url, BoxCloneSyncChannel>>>);

impl Channels {
    fn connect(&self, url: Url, worker: Worker) {
        let (client, server) = tokio::io::duplex(1 << 20);
        let mut client = Some(TokioIo::new(client));
        let connector = tower::service_fn(move |_| {
            let client = client.take().ok_or_else(|| std::io::Error::other("connected twice"));
            std::future::ready(client)
        });
        let channel = Endpoint::from_static("http://worker").connect_with_connector_lazy(connector);
        self.0.lock().unwrap().insert(url, BoxCloneSyncChannel::new(channel));
        let server = futures::stream::iter([Ok::<_, std::io::Error>(server)]);
        tokio::spawn(
            Server::builder().add_service(worker.into_worker_server()).serve_with_incoming(server),
        );
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let channel = self.0.lock().unwrap().get(url).cloned();
        let channel = channel
            .ok_or_else(|| DataFusionError::Execution(format!("no worker {url} is connected")))?;
        Ok(create_worker_client(channel))
    }
}
