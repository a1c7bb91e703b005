//! Workers with connections of their own, each behind a network and above a store that can fail.

use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, SharedMemoryPool};
use coscan_distributed::{
    Connections, Coordinator, CoordinatorOptions, QueryDescription, RunningTasks, Security,
    WorkerHealth, WorkerOptions, WorkerServer, worker,
};
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{DirectFileStore, Stores};
use coscan_storage::table::FileOptions;
use coscan_testing::{Fate, Faults as StoreFaults};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::exec_datafusion_err;
use datafusion::config::Dialect;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::channels::{Channels, Faults, Point};
use super::proxy::Proxy;
use crate::data::{ROW_GROUP_ROWS, tpch_session};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The worker ends without a word.
    Kill,
    /// The worker neither answers nor closes its connections.
    Stop,
    /// All connections to the worker end. New ones work.
    Cut,
    /// The worker refuses what it is asked for.
    Refuse,
    /// The worker's store fails.
    Store,
}

impl Fault {
    pub(super) const ALL: [Self; 5] =
        [Self::Kill, Self::Stop, Self::Cut, Self::Refuse, Self::Store];
}

struct FaultyWorker {
    url: Url,
    proxy: Proxy,
    store: StoreFaults,
    manager: BufferManager,
    tasks: RunningTasks,
    server: CancellationToken,
}

impl FaultyWorker {
    fn fail(&self, fault: Fault) -> Option<DataFusionError> {
        match fault {
            Fault::Kill => {
                self.proxy.remove();
                self.server.cancel();
            }
            Fault::Stop => self.proxy.stop(),
            Fault::Cut => self.proxy.cut(),
            Fault::Refuse => return Some(exec_datafusion_err!("it is refused on purpose")),
            Fault::Store => self.store.all(Fate::Fail),
        }
        None
    }

    /// What it holds for queries: tasks, scans, chunks, bytes of operators. A worker that was killed has no memory.
    fn held(&self) -> (usize, usize, usize, u64) {
        if self.server.is_cancelled() {
            return (0, 0, 0, 0);
        }
        let report = self.manager.report();
        (self.tasks.count(), report.scans, report.chunks_in_use, report.operator_bytes)
    }
}

/// Three workers, and a coordinator that is none of them.
pub(super) struct FaultyCluster {
    workers: Arc<Vec<FaultyWorker>>,
    options: CoordinatorOptions,
    pub(super) coordinator: Coordinator,
    faults: Faults,
    pub(super) session: SessionContext,
    _servers: Vec<DropGuard>,
    _threads: TaskThreads,
}

/// The threads of tasks. Those of connections must stay free, or a busy worker seems lost.
struct TaskThreads(Option<Runtime>);

impl TaskThreads {
    fn new() -> (Self, Handle) {
        let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        (Self(Some(runtime)), handle)
    }
}

impl Drop for TaskThreads {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

fn coscan(store: &StoreFaults) -> CoscanOptions {
    let manager = BufferManager::new(Options::with_memory_bytes(256 << 20)).unwrap();
    let stores = Stores::new();
    let files = store.around(Arc::new(DirectFileStore::default()));
    stores.register(&Url::parse("file:///").unwrap(), files);
    let options = FileOptions { chunk_rows: ROW_GROUP_ROWS, ..FileOptions::default() };
    let coscan = CoscanOptions::new(&manager).with_stores(stores).with_table_options(options);
    coscan.with_direct_bytes_max(0)
}

async fn coordinator(
    workers: &[FaultyWorker],
    options: &CoordinatorOptions,
    faults: &Faults,
) -> Coordinator {
    let connections = Arc::new(Connections::new(Security::None));
    let urls = workers.iter().map(|worker| worker.url.clone());
    let healthy = Arc::new(WorkerHealth::new(Arc::clone(&connections), urls));
    healthy.ask_all().await;
    let channels = Channels { connections, faults: faults.clone(), is_worker: false };
    Coordinator::new(options.clone(), healthy, Arc::new(channels))
}

impl FaultyCluster {
    pub(super) async fn start() -> Self {
        Self::start_with(CoordinatorOptions::default()).await
    }

    /// All scans are divided, whatever the options say.
    pub(super) async fn start_with(options: CoordinatorOptions) -> Self {
        let options = CoordinatorOptions { divided_bytes_min: 0, ..options };
        let faults = Faults::default();
        let (task_threads, threads) = TaskThreads::new();
        let (mut workers, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let store = StoreFaults::default();
            let coscan = coscan(&store);
            let manager = coscan.manager().clone();
            let memory = SharedMemoryPool::of_manager(&manager);
            let connections = Arc::new(Connections::new(Security::None));
            let channels = Channels { connections, faults: faults.clone(), is_worker: true };
            let worker = worker(WorkerOptions {
                coscan,
                runtime: Arc::default(),
                make_memory_pool: Arc::new(move |_| Arc::clone(&memory)),
                channels: Arc::new(channels),
                register_functions: Arc::new(|_| Ok(())),
                stores: vec![Url::parse("file:///").unwrap()].into(),
            });
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let proxy = Proxy::start(listener.local_addr().unwrap()).await;
            let url = Url::parse(&format!("http://{}", proxy.address)).unwrap();
            let server = WorkerServer::new(worker, Security::None, options.queries_max);
            let (tasks, stopped) = (server.tasks(), CancellationToken::new());
            tokio::spawn(server.serve(
                listener,
                threads.clone(),
                CancellationToken::new(),
                stopped.clone(),
            ));
            servers.push(stopped.clone().drop_guard());
            workers.push(FaultyWorker { url, proxy, store, manager, tasks, server: stopped });
        }
        let coordinator = coordinator(&workers, &options, &faults).await;
        let session = tpch_session(4, Some(&coscan(&StoreFaults::default()))).await;
        Self {
            workers: Arc::new(workers),
            options,
            coordinator,
            faults,
            session,
            _servers: servers,
            _threads: task_threads,
        }
    }

    /// One more coordinator of the same workers.
    pub(super) async fn another_coordinator(&self) -> Coordinator {
        coordinator(&self.workers, &self.options, &self.faults).await
    }

    /// Makes a worker fail at the `place`-th time that a point is passed, or any point.
    pub(super) fn arm(&self, point: Option<Point>, place: usize, fault: Fault) {
        let workers = Arc::clone(&self.workers);
        let happens = move |url: &Url| {
            let worker = workers.iter().find(|worker| worker.url == *url);
            worker.expect("one of them").fail(fault)
        };
        self.faults.arm(point, place, Box::new(happens));
    }

    pub(super) fn has_failed(&self) -> bool {
        self.faults.has_happened()
    }

    pub(super) async fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.query_of(&self.coordinator, sql).await
    }

    /// The rows of a query of a coordinator.
    pub(super) async fn query_of(
        &self,
        coordinator: &Coordinator,
        sql: &str,
    ) -> Result<Vec<RecordBatch>> {
        self.start_query(coordinator, sql).await?.try_collect().await
    }

    /// Starts a query of a coordinator.
    pub(super) async fn start_query(
        &self,
        coordinator: &Coordinator,
        sql: &str,
    ) -> Result<SendableRecordBatchStream> {
        let state = self.session.state();
        let statement = state.sql_to_statement(sql, &Dialect::Generic)?;
        let statement = state.statement_to_plan(statement).await?;
        let context = |state: &_| TaskContext::from(state);
        coordinator.execute(&state, &statement, &QueryDescription::default(), &context).await
    }

    /// Waits until no worker holds anything for queries.
    pub(super) async fn hold_nothing(&self) {
        for worker in self.workers.iter() {
            while worker.held() != (0, 0, 0, 0) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
    }

    /// What each worker holds for queries.
    pub(super) fn held(&self) -> Vec<(usize, usize, usize, u64)> {
        self.workers.iter().map(FaultyWorker::held).collect()
    }

    /// Holds up all reads of the workers, or lets them through.
    pub(super) fn hold_up_reads(&self, hold_up: bool) {
        for worker in self.workers.iter() {
            if hold_up { worker.store.close() } else { worker.store.open() }
        }
    }

    /// Lets everything work again, but for workers that were killed.
    pub(super) fn heal(&self) {
        for worker in self.workers.iter() {
            worker.proxy.go_on();
            worker.store.all(Fate::Answer);
        }
    }
}
