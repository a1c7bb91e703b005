//! The rows of a common subplan, which are computed once.
//!
//! The first place to be read executes its copy of the subplan, all partitions at once, and keeps the rows in memory.
//! Partitions of two copies are never mixed, since a copy may distribute its rows otherwise. If memory is short, the
//! first place goes on with the rows that it has and those to come, and each other place executes its own copy.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::internal_datafusion_err;
use datafusion::common::runtime::JoinSet;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::future::{BoxFuture, Shared};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};

use crate::operator::Plan;

/// The rows of a subplan for all of its places.
pub(super) struct SharedRows {
    /// The number of streams that read it in one execution of the statement: one for each partition of each place.
    streams: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Option<Rows>,
    /// The streams that read it now.
    reading: usize,
    /// The streams that have begun to read these rows.
    begun: usize,
}

/// The rows, once there are all of them.
type Rows = Shared<BoxFuture<'static, std::result::Result<Arc<Computed>, Arc<DataFusionError>>>>;

type BatchStream = BoxStream<'static, Result<RecordBatch>>;

/// The rows of one copy of the subplan.
struct Computed {
    /// The place that has executed its copy.
    place: usize,
    rows: PlaceRows,
}

enum PlaceRows {
    /// All rows, by partition.
    All(Vec<Held>),
    /// There was no memory for all. Each partition, until the place reads it.
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
        f.debug_struct("SharedRows").field("streams", &self.streams).finish_non_exhaustive()
    }
}

impl SharedRows {
    pub(super) fn new(places: usize, partitions: usize) -> Arc<Self> {
        Arc::new(Self { streams: places * partitions, state: Mutex::default() })
    }

    /// The rows of a partition at a place, whose copy of the subplan is `input`. Nothing is executed before it is polled.
    pub(super) fn read(
        self: &Arc<Self>,
        place: usize,
        partition: usize,
        input: &Plan,
        context: Arc<TaskContext>,
    ) -> BatchStream {
        let (shared, input) = (Arc::clone(self), Arc::clone(input));
        let reading = async move { shared.partition(place, partition, &input, context).await };
        stream::once(reading).try_flatten().boxed()
    }

    async fn partition(
        self: Arc<Self>,
        place: usize,
        partition: usize,
        input: &Plan,
        context: Arc<TaskContext>,
    ) -> Result<BatchStream> {
        let reader = self.begin(place, input, &context);
        let computed = reader.rows.clone().await.map_err(DataFusionError::Shared)?;
        let part = match &computed.rows {
            PlaceRows::All(partitions) => {
                let batches = partitions.get(partition).map(|held| held.batches.clone());
                let batches = batches.ok_or_else(|| no_partition(partition))?;
                return Ok(held(batches, (reader, computed)));
            }
            PlaceRows::Part(partitions) if computed.place == place => {
                let part = partitions.get(partition).ok_or_else(|| no_partition(partition))?;
                part.lock().unwrap_or_else(PoisonError::into_inner).take()
            }
            PlaceRows::Part(_) => None,
        };
        let Some((Held { batches, memory }, rest)) = part else {
            return Ok(input.execute(partition, context)?.boxed());
        };
        let rest = rest.map_or_else(|| stream::empty().boxed(), StreamExt::boxed);
        Ok(held(batches, memory).chain(rest).boxed())
    }

    fn begin(self: &Arc<Self>, place: usize, input: &Plan, context: &Arc<TaskContext>) -> Reader {
        let mut state = self.lock();
        let new = || compute(place, Arc::clone(input), Arc::clone(context)).boxed().shared();
        let rows = state.rows.get_or_insert_with(new).clone();
        state.reading += 1;
        state.begun += 1;
        drop(state);
        Reader { shared: Arc::clone(self), rows }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_partition(partition: usize) -> DataFusionError {
    internal_datafusion_err!("a common subplan has no partition {partition}")
}

/// A stream that reads the rows.
struct Reader {
    shared: Arc<SharedRows>,
    rows: Rows,
}

impl Drop for Reader {
    /// The last reader ends what has not ended yet. It drops the rows when all have read them.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.reading -= 1;
        let is_needed = self.rows.peek().is_some() && state.begun < self.shared.streams;
        if state.reading > 0 || is_needed {
            return;
        }
        let ended = mem::take(&mut *state);
        drop(state);
        drop(ended);
    }
}

/// A stream of batches that holds something until it ends or is dropped.
fn held<T: Send + 'static>(batches: Vec<RecordBatch>, holds: T) -> BatchStream {
    stream::iter(batches)
        .map(move |batch| {
            let _holds = &holds;
            Ok(batch)
        })
        .boxed()
}

/// Executes all partitions of a place's copy.
async fn compute(
    place: usize,
    input: Plan,
    context: Arc<TaskContext>,
) -> std::result::Result<Arc<Computed>, Arc<DataFusionError>> {
    let partitions = partitions(&input, &context).await.map_err(Arc::new)?;
    let rows = match partitions.iter().all(|(_, rest)| rest.is_none()) {
        true => PlaceRows::All(partitions.into_iter().map(|(held, _)| held).collect()),
        false => {
            PlaceRows::Part(partitions.into_iter().map(|rows| Mutex::new(Some(rows))).collect())
        }
    };
    Ok(Arc::new(Computed { place, rows }))
}

async fn partitions(input: &Plan, context: &Arc<TaskContext>) -> Result<Vec<Partition>> {
    let is_short = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for partition in 0..input.properties().output_partitioning().partition_count() {
        let batches = input.execute(partition, Arc::clone(context))?;
        let consumer = MemoryConsumer::new(format!("CommonSubplan[{partition}]"));
        let memory = consumer.register(context.memory_pool());
        let is_short = Arc::clone(&is_short);
        tasks.spawn(async move { Ok((partition, collect(batches, memory, &is_short).await?)) });
    }
    let mut partitions = Vec::with_capacity(tasks.len());
    while let Some(ended) = tasks.join_next().await {
        let partition: Result<_> =
            ended.map_err(|error| DataFusionError::External(error.into()))?;
        partitions.push(partition?);
    }
    partitions.sort_by_key(|(partition, _)| *partition);
    Ok(partitions.into_iter().map(|(_, rows)| rows).collect())
}

/// Collects the rows of a partition, until memory is short for any.
async fn collect(
    mut rest: SendableRecordBatchStream,
    memory: MemoryReservation,
    is_short: &AtomicBool,
) -> Result<Partition> {
    let mut batches = Vec::new();
    while let Some(batch) = rest.next().await.transpose()? {
        let bytes = batch.columns().iter().map(bytes).sum();
        batches.push(batch);
        if memory.try_grow(bytes).is_err() {
            is_short.store(true, Ordering::Relaxed);
        }
        if is_short.load(Ordering::Relaxed) {
            return Ok((Held { batches, memory }, Some(rest)));
        }
    }
    Ok((Held { batches, memory }, None))
}

/// The bytes of the values of an array, which may be a part of a larger one.
fn bytes(array: &ArrayRef) -> usize {
    let texts = match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    texts + array.to_data().get_slice_memory_size().unwrap_or(0)
}

#[cfg(test)]
mod tests;
