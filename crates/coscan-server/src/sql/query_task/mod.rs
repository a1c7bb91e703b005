//! Runs queries on threads of their own. An operator may occupy a thread for minutes. Meanwhile connections must be
//! served, above all requests to cancel.

use std::any::Any;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{ThreadId, current};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, unfold};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::queries::{QueryError, QueryRegistration, Work};
use crate::sql::TextMemory;
use crate::sql::allocations::{AllocationWatch, Allocations};
use crate::sql::errors::{from_datafusion, panicked};
use crate::sql::fair_share::Taker;
use crate::sql::query_threads::PoolMember;

/// The context of a query for the tasks that work for it.
#[derive(Debug)]
pub(super) struct QueryContext {
    cancel: CancellationToken,
    allocations: Arc<Allocations>,
    batch: Mutex<Batch>,
    taker: Taker,
    place: Option<PoolMember>,
    /// The memory of the plan.
    _memory: Option<TextMemory>,
    _work: Work,
}

/// The memory that the values of expressions take in a batch.
#[derive(Debug)]
struct Batch {
    memory: MemoryReservation,
    /// The maximum bytes so far, for each expression and thread.
    bytes: HashMap<(usize, ThreadId), usize>,
}

impl QueryContext {
    /// Creates the context with the memory of its operators.
    pub(super) fn new(
        registration: &QueryRegistration,
        watch: &Arc<AllocationWatch>,
        memory: &Arc<dyn MemoryPool>,
        taker: Taker,
        place: Option<PoolMember>,
        plan_memory: Option<TextMemory>,
    ) -> Self {
        let allocations = watch.query(&taker.user, memory);
        let memory = MemoryConsumer::new("expressions").register(memory);
        let batch = Batch { memory, bytes: HashMap::new() };
        Self {
            cancel: registration.cancel_token().clone(),
            allocations,
            batch: Mutex::new(batch),
            taker,
            place,
            _memory: plan_memory,
            _work: registration.work(),
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Reserves `bytes` for the values of an expression, until the query has ended.
    ///
    /// # Errors
    /// If the query may not hold that much, or the server has less.
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

/// Makes a future a task that works for a query, in turns.
fn task_of<T: Send>(
    query: Arc<QueryContext>,
    mut task: BoxFuture<'_, T>,
) -> impl Future<Output = T> + Send {
    let (taker, allocations) = (query.taker.clone(), Arc::clone(&query.allocations));
    let of_task = Arc::clone(&query);
    let counted = poll_fn(move |context| {
        let mut poll = || allocations.count(|| task.poll_unpin(context));
        match &of_task.place {
            Some(place) => place.poll(poll),
            None => poll(),
        }
    });
    QUERY.scope(query, taker.task(counted))
}

/// Makes each task that operators start work for the same query.
struct KeepsQuery;

type Erased = Box<dyn Any + Send>;

impl JoinSetTracer for KeepsQuery {
    fn trace_future(&self, future: BoxFuture<'static, Erased>) -> BoxFuture<'static, Erased> {
        match current_query() {
            Some(query) => task_of(query, future).boxed(),
            None => future,
        }
    }

    fn trace_block(
        &self,
        block: Box<dyn FnOnce() -> Erased + Send>,
    ) -> Box<dyn FnOnce() -> Erased + Send> {
        match current_query() {
            Some(query) => Box::new(move || {
                let allocations = Arc::clone(&query.allocations);
                QUERY.sync_scope(query, || allocations.count(block))
            }),
            None => block,
        }
    }
}

/// The batches of a query.
pub(super) type Batches = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Starts a query on the query threads. Returns its columns, and its batches as they are made, one in advance. Dropping
/// the future or the batches ends the query as soon as its operators yield, and then drops its work.
pub(super) async fn run_on(
    threads: &Handle,
    query: QueryContext,
    start: impl Future<Output = Result<SendableRecordBatchStream, QueryError>> + Send + 'static,
) -> Result<(SchemaRef, Batches), QueryError> {
    // Only the first call has an effect. If another crate has called it before, tasks that
    // operators start are not assigned to the query.
    let _ = set_join_set_tracer(&KeepsQuery);
    let (started, starting) = oneshot::channel();
    let (sender, batches) = mpsc::channel(1);
    let query = Arc::new(query);
    let allocations = Arc::clone(&query.allocations);
    let work = async move {
        let mut stream = start.await?;
        started.send(stream.schema()).ok();
        // The next batch is made only if there is room for it. A slow client holds one batch.
        while let Ok(room) = sender.reserve().await {
            let Some(batch) = stream.next().await else { break };
            let batch = batch.map_err(from_datafusion)?;
            allocations.hand_over(&batch);
            room.send(batch);
        }
        Ok(())
    };
    let allocations = Arc::clone(&query.allocations);
    let work = async move {
        tokio::select! {
            biased;
            error = allocations.exceeded() => Err(error),
            worked = work => worked,
        }
    };
    let mut task = AbortOnDrop(threads.spawn(task_of(query, work.boxed())));
    let Ok(schema) = starting.await else {
        let failed = task.ended("starting").await;
        return Err(failed.err().unwrap_or_else(|| panicked("starting")));
    };
    let stream = unfold(Some((batches, task)), async |running| {
        let (mut batches, mut task) = running?;
        match batches.recv().await {
            Some(batch) => Some((Ok(batch), Some((batches, task)))),
            None => task.ended("running").await.err().map(|error| (Err(error), None)),
        }
    });
    Ok((schema, stream.boxed()))
}

/// The task that works for a query.
struct AbortOnDrop(JoinHandle<Result<(), QueryError>>);

impl AbortOnDrop {
    /// Completes when the task has ended on its own.
    async fn ended(&mut self, doing: &str) -> Result<(), QueryError> {
        (&mut self.0).await.unwrap_or_else(|_panic| Err(panicked(doing)))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
