//! The first stage of an aggregation that shares the states of chunks with other queries.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, MetricBuilder, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use super::chunk_plan::ChunkPlan;
use super::loan::Loan;
use super::output::only_scan;
use super::segments::{Part, SegmentKind, Segments};
use crate::batch_bytes::slice_bytes;
use crate::execution::exec::SharedScanExec;
use crate::operator::{Operator, OperatorExec, Plan};
use crate::shared_results::{Collected, GROUPS_MAX, NotPublished, QueryFragment};

/// The name of the counter of chunks whose results were there.
pub(crate) const CHUNKS_FROM_RESULTS: &str = "chunks_from_results";

/// Aggregates a table as the engine's first stage does, with the filters below it. It computes the state of a chunk apart and
/// publishes it where that is of use to other queries, and takes states that others have published: their chunks are not read.
///
/// EXPLAIN shows in `per_chunk` the operators that chunks go through, from the last to the first.
///
/// EXPLAIN ANALYZE adds:
///
/// | figure | meaning |
/// |---|---|
/// | `chunks_computed` | chunks that it has aggregated |
/// | `chunks_from_results` | chunks whose states it has taken from other queries |
/// | `chunks_published` | of the computed ones, those whose states others can take |
/// | `chunks_refused` | of the computed ones, those whose states were too large, or for which there was no memory |
pub(crate) type SharedAggregateExec = OperatorExec<SharedAggregate>;

/// The part of [`SharedAggregateExec`] that other operators do not have. Its input is a [`SharedScanExec`] that reads whole chunks.
#[derive(Clone, Debug)]
pub(crate) struct SharedAggregate {
    fragment: Arc<QueryFragment>,
    /// Whether states stay for later queries.
    keeps: bool,
    per_chunk: ChunkPlan,
    properties: Arc<PlanProperties>,
}

impl SharedAggregate {
    /// Puts a first stage of an aggregation above a scan. `per_chunk` is the same stage above a leaf for the rows of chunks. States
    /// may stay for later queries.
    ///
    /// # Errors
    /// If it cannot be above it.
    pub(crate) fn above(
        aggregate: &AggregateExec,
        (fragment, keeps): (QueryFragment, bool),
        per_chunk: Plan,
        scan: SharedScanExec,
    ) -> Result<SharedAggregateExec> {
        let operator = Self {
            fragment: Arc::new(fragment),
            keeps,
            per_chunk: ChunkPlan::new(per_chunk),
            properties: Arc::clone(aggregate.properties()),
        };
        OperatorExec::above(operator, vec![Arc::new(scan)])
    }
}

impl Operator for SharedAggregate {
    const NAME: &'static str = "SharedAggregateExec";

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        only_scan(inputs)?;
        Ok(Arc::clone(&self.properties))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        vec![format!("per_chunk=({})", self.per_chunk)]
    }

    fn execute(
        plan: &SharedAggregateExec,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (scan, operator) = (only_scan(&plan.inputs)?, &plan.operator);
        let batch_rows = context.session_config().batch_size();
        let (reader, baseline) =
            scan.execute_sharing(partition, (&operator.fragment, operator.keeps), &context);
        let count = |name| MetricBuilder::new(&plan.metrics).global_counter(name);
        let aggregation = Aggregation {
            plan: operator.per_chunk.clone(),
            schema: plan.schema(),
            batch_rows,
            segments: Some(Segments::new(reader, baseline, scan.schema(), batch_rows)),
            lender: Loan::new(),
            running: None,
            collected: None,
            memory: MemoryConsumer::new(Self::NAME).register(context.memory_pool()),
            output: VecDeque::new(),
            computed: count("chunks_computed"),
            from_results: count(CHUNKS_FROM_RESULTS),
            published: count("chunks_published"),
            refused: count("chunks_refused"),
            context,
        };
        let baseline = BaselineMetrics::new(&plan.metrics, partition);
        let states = stream::try_unfold(aggregation, async |mut aggregation| {
            Ok(aggregation.next().await?.map(|batch| (batch, aggregation)))
        });
        let states = states.boxed().inspect_ok(move |batch| {
            batch.record_output(&baseline);
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(plan.schema(), states))))
    }
}

/// The execution of a partition.
struct Aggregation {
    plan: ChunkPlan,
    context: Arc<TaskContext>,
    schema: SchemaRef,
    batch_rows: usize,
    /// `None` while lent to the running plan.
    segments: Option<Segments>,
    lender: Loan<Segments>,
    /// The states of the segment that is being aggregated.
    running: Option<SendableRecordBatchStream>,
    /// The state of that segment so far, if it is one chunk that is of use to others.
    collected: Option<Collected>,
    /// The memory of the state.
    memory: MemoryReservation,
    output: VecDeque<RecordBatch>,
    computed: Count,
    from_results: Count,
    published: Count,
    refused: Count,
}

impl Aggregation {
    /// The next states, or `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.output.pop_front() {
                return Ok(Some(batch));
            }
            if let Some(running) = &mut self.running {
                match running.try_next().await? {
                    Some(batch) => self.take(batch),
                    None => self.end_segment()?,
                }
            } else if !self.begin_part().await? {
                return Ok(None);
            }
        }
    }

    /// Begins the next part. Returns false if there is none.
    async fn begin_part(&mut self) -> Result<bool> {
        let Some(mut segments) = self.segments.take() else {
            return internal_err!("rows are still lent although all their states have come");
        };
        match segments.next().await? {
            None => return Ok(false),
            Some(Part::State(state)) => {
                self.from_results.add(1);
                self.output.extend(state.batches(&self.schema, self.batch_rows)?);
                self.segments = Some(segments);
            }
            Some(Part::Segment(kind)) => {
                let is_apart = kind == SegmentKind::OneChunk;
                self.collected = is_apart.then(|| Collected::State(Vec::new()));
                let rows = self.lender.lend(segments);
                self.running = Some(self.plan.execute(vec![rows], &self.context)?);
            }
        }
        Ok(true)
    }

    /// Takes a part of the state of the running segment.
    fn take(&mut self, batch: RecordBatch) {
        if let Some(Collected::State(batches)) = &mut self.collected {
            let groups = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
            let is_large = groups + batch.num_rows() > GROUPS_MAX;
            if !is_large && self.memory.try_grow(slice_bytes(&batch)).is_ok() {
                batches.push(batch);
                return;
            }
            self.hand_on();
            let reason = if is_large { NotPublished::TooLarge } else { NotPublished::Failed };
            self.collected = Some(Collected::Not(reason));
        }
        self.output.push_back(batch);
    }

    /// Hands on what was collected.
    fn hand_on(&mut self) {
        if let Some(Collected::State(batches)) = self.collected.take() {
            self.output.extend(batches);
        }
        self.memory.free();
    }

    /// Ends the running segment, and publishes the state of its chunk.
    fn end_segment(&mut self) -> Result<()> {
        self.running = None;
        let Some(segments) = self.lender.take() else {
            return internal_err!("rows are still lent although all their states have come");
        };
        self.computed.add(segments.chunk_count());
        if let (Some(collected), Some((chunk, rows)), Some(others)) =
            (&self.collected, segments.complete_chunk(), segments.subscription())
        {
            let is_published = others.publish(chunk, rows, &self.schema, collected);
            (if is_published { &self.published } else { &self.refused }).add(1);
        }
        self.hand_on();
        self.segments = Some(segments);
        Ok(())
    }
}
