//! Aggregation of a table by leading columns of its order, chunk by chunk.

use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt as _, TryStreamExt, stream};

use super::chunk_rows::ChunkRows;
use super::ordered_aggregation::{Aggregation, ChunkPlans};
use super::output::one_partition;
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
    /// The order columns by which it groups, as indexes into the scan's columns.
    key: Vec<usize>,
    plans: ChunkPlans,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl OrderedAggregateExec {
    /// Creates the operator from an aggregate of the first or the only stage, whose leaf is a [`LeafExec`].
    pub(crate) fn new(
        aggregate: &AggregateExec,
        scan: Arc<dyn ExecutionPlan>,
        key: Vec<usize>,
    ) -> Result<Self> {
        let plans = ChunkPlans::new(aggregate)?;
        let schema = plans.inner.plan().schema();
        let properties =
            one_partition(EquivalenceProperties::new(schema), EmissionType::Incremental);
        let (properties, metrics) = (Arc::new(properties), ExecutionPlanMetricsSet::new());
        Ok(Self { scan, key, plans, properties, metrics })
    }

    fn with_scan(
        &self,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(scan), true) if scan.is::<SharedScanExec>() => Ok(Arc::new(Self {
                scan,
                key: self.key.clone(),
                plans: self.plans.clone(),
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
                write!(f, "OrderedAggregateExec: key=[{key}], per_chunk=({})", self.plans.inner)
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

    /// False, since each partition of the scan has a task already.
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
        let plans = self.plans.clone();
        let aggregation =
            Aggregation::new(plans, Arc::clone(&context), memory, readers, &self.metrics);
        let aggregation = Arc::new(aggregation);
        let mut partitions = Vec::with_capacity(readers);
        for partition in 0..readers {
            let (reader, baseline) = scan.execute_chunks(partition, &context)?;
            partitions.push(ChunkRows::new(reader, baseline, scan.schema(), self.key.clone()));
        }
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        // The tasks start when the first group is requested. Before that they would only hold
        // chunks.
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
