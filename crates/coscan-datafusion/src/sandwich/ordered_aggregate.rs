//! Aggregation of a table by leading columns of its order, chunk by chunk.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt as _, TryStreamExt, stream};
use tokio::sync::mpsc::Sender;

use super::chunk_plan::ChunkPlan;
use super::chunk_rows::{ChunkRows, Lender};
use super::leaf::LeafExec;
use super::output::{one_partition, send_all};
use crate::execution::exec::SharedScanExec;

/// Groups the rows of a table by columns that lead its order, and maybe others, without reading it in order.
///
/// The groups of a chunk are complete, except those of its first and its last key: they are returned as soon as the
/// chunk has been read, with the memory of streaming aggregation. Of the first and the last key of each chunk the
/// states of the aggregates are kept, two rows or so, and merged at the end [CS07 §7.2].
///
/// EXPLAIN shows:
///
/// | field | meaning |
/// |---|---|
/// | `key` | the columns of the table's order by which it groups |
/// | `per_chunk` | the operators that each chunk goes through, from the last to the first |
///
/// EXPLAIN ANALYZE adds `chunks`, how often they were started, and `border_groups`, the groups that were kept.
#[derive(Debug)]
pub(crate) struct OrderedAggregateExec {
    /// A [`SharedScanExec`] in any order.
    scan: Arc<dyn ExecutionPlan>,
    /// The columns of the order by which it groups, as indexes into the scan's columns.
    key: Vec<usize>,
    filling: Filling,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// The plans that rows go through.
#[derive(Clone, Debug)]
struct Filling {
    /// For the rows of a chunk between its borders.
    inner: ChunkPlan,
    /// For the rows at the borders of a chunk: states of the aggregates.
    border: ChunkPlan,
    /// For those states, of all chunks.
    merge: ChunkPlan,
}

impl Filling {
    /// Of an aggregate of the first stage, or of the only one, whose leaf is a [`LeafExec`].
    fn new(aggregate: &AggregateExec) -> Result<Self> {
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
            Arc::new(LeafExec::of_chunks(
                "groups at borders",
                Arc::new(one_partition(states, EmissionType::Incremental)),
            )),
            input_schema,
        )?;
        Ok(Self {
            inner: ChunkPlan::new(Arc::new(inner)),
            border: ChunkPlan::new(border),
            merge: ChunkPlan::new(Arc::new(merge)),
        })
    }
}

impl OrderedAggregateExec {
    /// Of an aggregate of the first stage, or of the only one, whose leaf is a [`LeafExec`].
    pub(crate) fn new(
        aggregate: &AggregateExec,
        scan: Arc<dyn ExecutionPlan>,
        key: Vec<usize>,
    ) -> Result<Self> {
        let filling = Filling::new(aggregate)?;
        let schema = filling.inner.plan().schema();
        let properties =
            one_partition(EquivalenceProperties::new(schema), EmissionType::Incremental);
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Ok(Self { scan, key, filling, properties, metrics })
    }

    fn with_scan(
        &self,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(scan), true) if scan.is::<SharedScanExec>() => Ok(Arc::new(Self {
                scan,
                key: self.key.clone(),
                filling: self.filling.clone(),
                properties: Arc::clone(&self.properties),
                metrics: ExecutionPlanMetricsSet::new(),
            })),
            _ => internal_err!("OrderedAggregateExec has a shared scan as its child"),
        }
    }
}

impl DisplayAs for OrderedAggregateExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.scan.schema();
        let key: Vec<_> =
            self.key.iter().map(|&column| schema.field(column).name().as_str()).collect();
        let key = key.join(", ");
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "key={key}"),
            _ => {
                write!(f, "OrderedAggregateExec: key=[{key}], per_chunk=({})", self.filling.inner)
            }
        }
    }
}

impl ExecutionPlan for OrderedAggregateExec {
    fn name(&self) -> &str {
        "OrderedAggregateExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.scan]
    }

    /// Each partition of the scan has a task of its own already.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_scan(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.with_scan(children)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(scan) = self.scan.downcast_ref::<SharedScanExec>() else {
            return internal_err!("OrderedAggregateExec has a shared scan as its child");
        };
        if partition > 0 {
            return internal_err!("partition {partition} of 1");
        }
        let readers = self.scan.output_partitioning().partition_count();
        let mut output = RecordBatchReceiverStreamBuilder::new(self.schema(), readers);
        let memory = MemoryConsumer::new("OrderedAggregateExec").register(context.memory_pool());
        let aggregation = Arc::new(Aggregation {
            filling: self.filling.clone(),
            context: Arc::clone(&context),
            states: Mutex::new((Vec::new(), memory)),
            running: AtomicUsize::new(readers),
            chunks: MetricBuilder::new(&self.metrics).global_counter("chunks"),
            border_groups: MetricBuilder::new(&self.metrics).global_counter("border_groups"),
        });
        let mut partitions = Vec::with_capacity(readers);
        for partition in 0..readers {
            let (reader, baseline) = scan.execute_chunks(partition, &context)?;
            partitions.push(ChunkRows::new(reader, baseline, scan.schema(), self.key.clone()));
        }
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        // The tasks start when the first group is asked for: before, they would only hold chunks.
        let groups = stream::once(async move {
            for rows in partitions {
                output.spawn(Arc::clone(&aggregation).run(rows, output.tx()));
            }
            Ok::<_, DataFusionError>(output.build())
        });
        let groups = groups.try_flatten().boxed().inspect_ok(move |batch| {
            batch.record_output(&baseline);
        });
        let groups = RecordBatchStreamAdapter::new(self.schema(), groups);
        Ok(Box::pin(cooperative(groups)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// An execution, which all tasks share.
struct Aggregation {
    filling: Filling,
    context: Arc<TaskContext>,
    /// The states of the groups at borders, and their memory.
    states: Mutex<(Vec<RecordBatch>, MemoryReservation)>,
    /// Tasks that have chunks to read.
    running: AtomicUsize,
    chunks: Count,
    border_groups: Count,
}

impl Aggregation {
    /// Aggregates the chunks of a partition. The last task of all returns the groups at borders, too.
    async fn run(
        self: Arc<Self>,
        mut rows: ChunkRows,
        output: Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let lender = Lender::new();
        while rows.next_chunk().await? {
            self.chunks.add(1);
            let inner: SendableRecordBatchStream = Box::pin(lender.lend(rows));
            let groups = self.filling.inner.execute(vec![inner], &self.context)?;
            if !send_all(groups, &output).await? {
                return Ok(());
            }
            let Some(given_back) = lender.take() else {
                return internal_err!("a chunk is still read although all its groups have come");
            };
            rows = given_back;
            let border = batches(rows.schema(), rows.take_border());
            let states = self.filling.border.execute(vec![border], &self.context)?;
            self.keep(states.try_collect().await?)?;
        }
        drop(rows);
        if self.running.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        let (states, _memory) = self.take_states();
        let states = batches(self.filling.border.plan().schema(), states);
        let groups = self.filling.merge.execute(vec![states], &self.context)?;
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
