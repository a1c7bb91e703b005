//! The rows of a common subplan, which are computed once.
//!
//! The first consumer to be read executes its copy of the subplan, all partitions at once, and keeps the rows in memory.
//! Partitions of two copies are never mixed, since a copy may distribute its rows otherwise. If memory is short, the
//! first consumer goes on with the rows that it has and those to come, and each other one executes its own copy.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_datafusion_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::future::{BoxFuture, Shared};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

use crate::batch_bytes::slice_bytes;
use crate::operator::Plan;

/// The divisor of the operators' memory that gives the most bytes that rows may take. More rows would be missed by others.
const MEMORY_DIVISOR: usize = 8;

/// The rows of a subplan for all of its consumers. They stay until the plan is dropped, so that a consumer that is executed
/// again has the same partitions.
#[derive(Default)]
pub(super) struct SharedRows(Mutex<State>);

#[derive(Default)]
struct State {
    rows: Option<Rows>,
    /// The streams that read them now.
    reading: usize,
}

/// The rows, once they are computed or memory is short. It is not polled itself, only clones of it: a polled one forgets
/// its result.
type Rows = Shared<BoxFuture<'static, std::result::Result<Arc<Computed>, Arc<DataFusionError>>>>;

type BatchStream = BoxStream<'static, Result<RecordBatch>>;

/// The rows of one copy of the subplan.
struct Computed {
    /// The consumer that has executed its copy.
    consumer: usize,
    rows: CopyRows,
}

enum CopyRows {
    /// All rows, by partition.
    All(Vec<Held>),
    /// There was no memory for all. Each partition is here until the consumer reads it.
    Part(Vec<Mutex<Option<Partition>>>),
}

/// Batches in memory.
#[derive(Debug)]
struct Held {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

/// The first rows of a partition, and the others if memory was short.
type Partition = (Held, Option<SendableRecordBatchStream>);

impl fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRows").finish_non_exhaustive()
    }
}

impl SharedRows {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The rows of a partition for a consumer, whose copy of the subplan is `input`.
    ///
    /// # Errors
    /// If the copy that is executed fails.
    pub(super) async fn read(
        self: Arc<Self>,
        consumer: usize,
        partition: usize,
        input: Plan,
        context: Arc<TaskContext>,
    ) -> Result<BatchStream> {
        let reader = self.begin(consumer, &input, &context);
        let computed = reader.rows.clone().await.map_err(DataFusionError::Shared)?;
        let part = match &computed.rows {
            CopyRows::All(partitions) => {
                let batches = partitions.get(partition).map(|held| held.batches.clone());
                let batches = batches.ok_or_else(|| no_partition(partition))?;
                let held = (reader, computed);
                return Ok(stream::iter(batches)
                    .map(move |batch| {
                        let _held = &held;
                        Ok(batch)
                    })
                    .boxed());
            }
            CopyRows::Part(partitions) if computed.consumer == consumer => {
                let part = partitions.get(partition).ok_or_else(|| no_partition(partition))?;
                part.lock().unwrap_or_else(PoisonError::into_inner).take()
            }
            CopyRows::Part(_) => None,
        };
        let Some((Held { batches, memory }, rest)) = part else {
            return Ok(input.execute(partition, context)?.boxed());
        };
        let rest = rest.map_or_else(|| stream::empty().boxed(), StreamExt::boxed);
        let first = stream::iter(batches).map(move |batch| {
            memory.shrink(slice_bytes(&batch).min(memory.size()));
            Ok(batch)
        });
        Ok(first.chain(rest).boxed())
    }

    fn begin(
        self: &Arc<Self>,
        consumer: usize,
        input: &Plan,
        context: &Arc<TaskContext>,
    ) -> ReadGuard {
        let mut state = self.lock();
        let new = || compute(consumer, Arc::clone(input), Arc::clone(context)).boxed().shared();
        let rows = state.rows.get_or_insert_with(new).clone();
        state.reading += 1;
        drop(state);
        ReadGuard { shared: Arc::clone(self), rows }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_partition(partition: usize) -> DataFusionError {
    internal_datafusion_err!("a common subplan has no partition {partition}")
}

/// Counts a stream that reads the rows.
struct ReadGuard {
    shared: Arc<SharedRows>,
    rows: Rows,
}

impl Drop for ReadGuard {
    /// The last reader cancels a computation that has not ended.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.reading -= 1;
        if state.reading > 0 || self.rows.peek().is_some() {
            return;
        }
        let ended = mem::take(&mut *state);
        drop(state);
        drop(ended);
    }
}

/// Executes all partitions of a consumer's copy.
async fn compute(
    consumer: usize,
    input: Plan,
    context: Arc<TaskContext>,
) -> std::result::Result<Arc<Computed>, Arc<DataFusionError>> {
    let partitions = partitions(&input, &context).await.map_err(Arc::new)?;
    let rows = match partitions.iter().all(|(_, rest)| rest.is_none()) {
        true => CopyRows::All(partitions.into_iter().map(|(held, _)| held).collect()),
        false => {
            CopyRows::Part(partitions.into_iter().map(|rows| Mutex::new(Some(rows))).collect())
        }
    };
    Ok(Arc::new(Computed { consumer, rows }))
}

async fn partitions(input: &Plan, context: &Arc<TaskContext>) -> Result<Vec<Partition>> {
    let count = input.properties().output_partitioning().partition_count();
    let executed = (0..count).map(|partition| input.execute(partition, Arc::clone(context)));
    let executed = executed.collect::<Result<Vec<_>>>()?;
    let limit_bytes = match context.memory_pool().memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / MEMORY_DIVISOR,
        _ => usize::MAX,
    };
    let left = Arc::new(AtomicUsize::new(limit_bytes));
    let tasks = executed.into_iter().enumerate().map(|(partition, batches)| {
        let consumer = MemoryConsumer::new(format!("CommonSubplan[{partition}]"));
        let memory = consumer.register(context.memory_pool());
        let left = Arc::clone(&left);
        let task = SpawnedTask::spawn(async move { collect(batches, memory, &left).await });
        async move {
            let joined = task.join_unwind().await;
            joined.map_err(|error| DataFusionError::External(error.into()))?
        }
    });
    futures::future::try_join_all(tasks).await
}

/// Collects the rows of a partition, as long as there is memory for all. `left` is the memory that is left for them, and 0
/// once any has found none.
async fn collect(
    mut rest: SendableRecordBatchStream,
    memory: MemoryReservation,
    left: &AtomicUsize,
) -> Result<Partition> {
    let mut batches = Vec::new();
    while let Some(batch) = rest.next().await.transpose()? {
        let bytes = slice_bytes(&batch);
        batches.push(batch);
        let fewer = |left: usize| left.checked_sub(bytes).filter(|left| *left > 0);
        let has_room = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok();
        if !has_room || memory.try_grow(bytes).is_err() {
            left.store(0, Ordering::Relaxed);
            return Ok((Held { batches, memory }, Some(rest)));
        }
    }
    Ok((Held { batches, memory }, None))
}

#[cfg(test)]
mod tests;
