//! An aggregation by leading columns of a table's order: the plans that rows go through, and an execution of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};
use tokio::sync::mpsc::Sender;

use super::chunk_plan::ChunkPlan;
use super::chunk_rows::ChunkRows;
use super::leaf::LeafExec;
use super::loan::{Lendable, Loan};
use super::output::{one_partition, send_all};

/// The plans that rows go through.
#[derive(Clone, Debug)]
pub(super) struct ChunkPlans {
    /// The plan for the rows of a chunk between its borders.
    pub(super) inner: ChunkPlan,
    /// The plan for the rows at the borders of a chunk. It returns states of the aggregates.
    border: ChunkPlan,
    /// The plan that merges the states of all chunks.
    merge: ChunkPlan,
}

impl ChunkPlans {
    /// Creates the plans from an aggregate of the first or the only stage, whose leaf is a [`LeafExec`].
    pub(super) fn new(aggregate: &AggregateExec) -> Result<Self> {
        let (aggregates, filters) = (aggregate.aggr_expr(), aggregate.filter_expr());
        let input_schema = aggregate.input_schema();
        let first_stage = |mode| {
            let (input, schema) = (Arc::clone(aggregate.input()), Arc::clone(&input_schema));
            let group_by = aggregate.group_expr().clone();
            AggregateExec::try_new(
                mode,
                group_by,
                aggregates.to_vec(),
                filters.to_vec(),
                input,
                schema,
            )
        };
        let (inner, border) =
            (first_stage(AggregateMode::Single)?, Arc::new(first_stage(AggregateMode::Partial)?));
        let states = EquivalenceProperties::new(border.schema());
        let merge = AggregateExec::try_new(
            AggregateMode::Final,
            aggregate.group_expr().as_final(),
            aggregates.to_vec(),
            vec![None; aggregates.len()],
            Arc::new(LeafExec::of_chunks("groups at borders", one_partition(states))),
            input_schema,
        )?;
        Ok(Self {
            inner: ChunkPlan::new(Arc::new(inner)),
            border: ChunkPlan::new(border),
            merge: ChunkPlan::new(Arc::new(merge)),
        })
    }
}

/// The state of an execution, which all its tasks share.
pub(super) struct Aggregation {
    plans: ChunkPlans,
    context: Arc<TaskContext>,
    /// The states of the groups at borders, and their memory.
    states: Mutex<(Vec<RecordBatch>, MemoryReservation)>,
    /// The number of tasks that have chunks to read.
    running: AtomicUsize,
    chunks: Count,
    border_groups: Count,
}

impl Aggregation {
    /// Creates an execution with `tasks` tasks.
    pub(super) fn new(
        plans: ChunkPlans,
        context: Arc<TaskContext>,
        memory: MemoryReservation,
        tasks: usize,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        let count = |name| MetricBuilder::new(metrics).global_counter(name);
        Self {
            plans,
            context,
            states: Mutex::new((Vec::new(), memory)),
            running: AtomicUsize::new(tasks),
            chunks: count("chunks"),
            border_groups: count("border_groups"),
        }
    }

    /// Aggregates the chunks of a partition. The task that ends last also returns the groups at borders.
    pub(super) async fn run(
        self: Arc<Self>,
        mut rows: ChunkRows,
        output: Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let lender = Loan::new();
        while rows.next_chunk().await? {
            self.chunks.add(1);
            let groups = self.plans.inner.execute(vec![lender.lend(rows)], &self.context)?;
            if !send_all(groups, &output).await? {
                return Ok(());
            }
            let Some(given_back) = lender.take() else {
                return internal_err!("a chunk is still read although all its groups have come");
            };
            rows = given_back;
            let border = batches(rows.schema(), rows.take_border());
            let states = self.plans.border.execute(vec![border], &self.context)?;
            self.keep(states.try_collect().await?)?;
        }
        drop(rows);
        if self.running.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        let (states, _memory) = self.take_states();
        let states = batches(self.plans.border.plan().schema(), states);
        let groups = self.plans.merge.execute(vec![states], &self.context)?;
        send_all(groups, &output).await?;
        Ok(())
    }

    fn keep(&self, states: Vec<RecordBatch>) -> Result<()> {
        let mut kept = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        for batch in states {
            self.border_groups.add(batch.num_rows());
            kept.1.try_grow(batch.get_array_memory_size())?;
            kept.0.push(batch);
        }
        Ok(())
    }

    fn take_states(&self) -> (Vec<RecordBatch>, MemoryReservation) {
        let mut kept = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = kept.1.take();
        (std::mem::take(&mut kept.0), memory)
    }
}

fn batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
    let batches = stream::iter(batches.into_iter().map(Ok));
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
