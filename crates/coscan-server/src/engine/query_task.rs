//! Queries run on threads of their own: an operator may keep a thread busy for minutes, and connections must be answered
//! meanwhile, requests to cancel above all.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{ThreadId, available_parallelism, current};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, unfold};
use futures::{FutureExt, StreamExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::TextMemory;
use crate::engine::errors::{from_engine, panicked};
use crate::engine::turns::Taker;
use crate::queries::{QueryError, QueryRegistration, Work};

/// The stack that a thread needs for the deepest statements that are accepted, in bytes. They are walked by recursion.
pub const STACK_BYTES: usize = 16 << 20;

/// Threads for each core. An operator that keeps a thread for long leaves the core to be shared with others.
const THREADS_PER_CORE: usize = 4;

/// Threads of queries.
#[derive(Debug)]
pub(super) struct QueryThreads(Option<Runtime>);

impl QueryThreads {
    /// So many threads; `None` for some per core.
    pub(super) fn new(count: Option<usize>) -> io::Result<Self> {
        // Whoever has set another one before does not learn from it when the work of a query has ended.
        let _ = set_join_set_tracer(&KeepsQuery);
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = count.unwrap_or_else(|| THREADS_PER_CORE * cores());
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).enable_all();
        builder.thread_name("coscan-queries").thread_stack_size(STACK_BYTES);
        Ok(Self(Some(builder.build()?)))
    }

    pub(super) fn handle(&self) -> Handle {
        match &self.0 {
            Some(runtime) => runtime.handle().clone(),
            None => Handle::current(), // Only while they are dropped.
        }
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background(); // A busy thread is not waited for.
        }
    }
}

/// A query, for the tasks that work for it.
#[derive(Debug)]
pub(super) struct QueryContext {
    cancel: CancellationToken,
    batch: Mutex<Batch>,
    taker: Taker,
    /// For the plan.
    _memory: Option<TextMemory>,
    _work: Work,
}

/// What the values of expressions take in a batch.
#[derive(Debug)]
struct Batch {
    memory: MemoryReservation,
    /// At most so far, for each expression and thread.
    bytes: HashMap<(usize, ThreadId), usize>,
}

impl QueryContext {
    /// With the memory that its operators have.
    pub(super) fn new(
        registration: &QueryRegistration,
        memory: &Arc<dyn MemoryPool>,
        taker: Taker,
        plan_memory: Option<TextMemory>,
    ) -> Self {
        let memory = MemoryConsumer::new("expressions").register(memory);
        let batch = Batch { memory, bytes: HashMap::new() };
        Self {
            cancel: registration.cancel_token().clone(),
            batch: Mutex::new(batch),
            taker,
            _memory: plan_memory,
            _work: registration.work(),
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Reserves memory for the values of an expression, of so many bytes, until the query has ended.
    ///
    /// # Errors
    /// If the query may not hold as much, or the server has less.
    pub(super) fn reserve_for_batch(
        &self,
        expression: usize,
        bytes: u64,
    ) -> Result<(), DataFusionError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = &mut *batch;
        let most = batch.bytes.entry((expression, current().id())).or_default();
        if bytes > *most {
            batch.memory.try_grow(bytes - *most)?;
            *most = bytes;
        }
        Ok(())
    }
}

tokio::task_local! {
    /// The query that a task works for.
    static QUERY: Arc<QueryContext>;
}

/// The query that this task works for.
pub(super) fn current_query() -> Option<Arc<QueryContext>> {
    QUERY.try_with(Arc::clone).ok()
}

/// Operators start tasks of their own: each works for the same query, in turns.
struct KeepsQuery;

type Erased = Box<dyn Any + Send>;

impl JoinSetTracer for KeepsQuery {
    fn trace_future(&self, future: BoxFuture<'static, Erased>) -> BoxFuture<'static, Erased> {
        match current_query() {
            Some(query) => {
                let taker = query.taker.clone();
                QUERY.scope(query, taker.task(future)).boxed()
            }
            None => future,
        }
    }

    fn trace_block(
        &self,
        block: Box<dyn FnOnce() -> Erased + Send>,
    ) -> Box<dyn FnOnce() -> Erased + Send> {
        match current_query() {
            Some(query) => Box::new(move || QUERY.sync_scope(query, block)),
            None => block,
        }
    }
}

/// The batches of a query.
pub(super) type Batches = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Starts a query on some threads, and returns its columns and batches as they come, one ahead. Dropping the future or
/// the batches ends the query as soon as its operators yield; its work is dropped then.
pub(super) async fn run_on(
    threads: &Handle,
    query: QueryContext,
    start: impl Future<Output = Result<SendableRecordBatchStream, QueryError>> + Send + 'static,
) -> Result<(SchemaRef, Batches), QueryError> {
    let (started, starting) = oneshot::channel();
    let (sender, batches) = mpsc::channel(1);
    let taker = query.taker.clone();
    let task = async move {
        let mut stream = match start.await {
            Ok(stream) => {
                started.send(Ok(stream.schema())).ok();
                stream
            }
            Err(error) => {
                started.send(Err(error)).ok();
                return;
            }
        };
        // Only with room for a batch is the next one made: a slow client holds one.
        while let Ok(room) = sender.reserve().await {
            let Some(batch) = stream.next().await else { break };
            room.send(batch.map_err(from_engine));
        }
    };
    let task = QUERY.scope(Arc::new(query), taker.task(task.boxed()));
    let task = AbortOnDrop(threads.spawn(task));
    let schema = starting.await.map_err(|_| panicked("starting"))??;
    let stream = unfold(Some((batches, task)), async |running| {
        let (mut batches, mut task) = running?;
        match batches.recv().await {
            Some(batch) => Some((batch, Some((batches, task)))),
            // The end, unless the task has panicked.
            None => match (&mut task.0).await {
                Ok(()) => None,
                Err(_) => Some((Err(panicked("running")), None)),
            },
        }
    });
    Ok((schema, stream.boxed()))
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::datatypes::Schema;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::*;
    use crate::config::Limits;
    use crate::engine::turns::Turns;
    use crate::queries::{ErrorKind, Queries, QueryState};
    use crate::users::Users;

    fn taker() -> Taker {
        Taker { turns: Turns::new(2), user: "ann".into(), weight: 1 }
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_not_the_end_of_the_rows() {
        let threads = QueryThreads::new(None).unwrap();
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = stream::iter(0..2).map(move |number| match number {
            0 => Ok(batch.clone()),
            _ => panic!("an operator is broken"),
        });
        let start = async move {
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches))
                as SendableRecordBatchStream)
        };
        let queries = Queries::new(&Limits::default(), false);
        let user = Users::anyone().find("ann").unwrap();
        let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let query = QueryContext::new(&queries.register(&user, "SELECT"), &memory, taker(), None);
        let (_, mut batches) = run_on(&threads.handle(), query, start).await.unwrap();
        batches.next().await.unwrap().unwrap();
        let error = batches.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        assert!(batches.next().await.is_none());
    }

    #[tokio::test]
    async fn work_that_does_not_notice_that_it_was_cancelled_keeps_its_slot() {
        let threads = QueryThreads::new(None).unwrap();
        let limits = Limits { queries_running: 1, queries_waiting: 0, ..Limits::default() };
        let queries = Queries::new(&limits, false);
        let user = Users::anyone().find("ann").unwrap();
        let registration = queries.register(&user, "SELECT");
        registration.admit(1).await.unwrap();
        let memory: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let query = QueryContext::new(&registration, &memory, taker(), None);
        let (done, blocked) = std::sync::mpsc::channel::<()>();
        let (busy, is_busy) = tokio::sync::oneshot::channel();
        // A task of an operator, which holds the query as well.
        let start = async move {
            let task = datafusion::common::runtime::SpawnedTask::spawn(async move {
                busy.send(()).ok();
                blocked.recv().ok();
            });
            task.await.ok();
            Err(panicked("starting"))
        };
        let running = tokio::spawn(async move {
            let _ = run_on(&threads.handle(), query, start).await;
            threads
        });
        is_busy.await.unwrap();
        running.abort();
        running.await.ok();
        drop(registration);
        assert_eq!(queries.list()[0].state, QueryState::Ending);
        let refused = queries.register(&user, "SELECT").admit(1).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Busy);
        done.send(()).unwrap();
        queries.drained().await;
        assert_eq!(queries.list()[0].state, QueryState::Cancelled);
        queries.register(&user, "SELECT").admit(1).await.unwrap();
    }
}
