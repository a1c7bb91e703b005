//! Plans over a table in its order, whose chunks several tasks work on.

use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt as _, TryStreamExt, stream};

use super::chunk_plan::ChunkPlan;
use super::in_order_execution::Execution;
use super::output::one_partition;
use crate::execution::exec::SharedScanExec;

/// Filters and projections over a table in its order, for which several tasks each work on a chunk. The rows are
/// returned chunk by chunk, so that the output is in the table's order without a merge.
///
/// One task has the chunk whose turn it is. The others work ahead as long as there is memory for their rows. While
/// memory is short, they return their chunks, so that a paused query holds no more than a scan of one partition.
///
/// EXPLAIN shows:
///
/// | field | meaning |
/// |---|---|
/// | `tasks` | the number of chunks that are worked on at the same time |
/// | `per_chunk` | the operators that each chunk goes through, from the last to the first |
///
/// EXPLAIN ANALYZE adds `chunks_given_back`, the chunks that were given back and worked on again.
#[derive(Debug)]
pub(crate) struct InOrderExec {
    /// A [`SharedScanExec`] in order.
    scan: Arc<dyn ExecutionPlan>,
    tasks: usize,
    filling: ChunkPlan,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl InOrderExec {
    /// Creates the operator from a plan that keeps the order of its leaf, a [`LeafExec`](super::leaf::LeafExec) with
    /// the rows of this scan.
    pub(crate) fn new(
        plan: Arc<dyn ExecutionPlan>,
        scan: Arc<dyn ExecutionPlan>,
        tasks: usize,
    ) -> Self {
        let equivalence = plan.properties().eq_properties.clone();
        let properties = Arc::new(one_partition(equivalence, EmissionType::Incremental));
        let (filling, metrics) = (ChunkPlan::new(plan), ExecutionPlanMetricsSet::new());
        Self { scan, tasks, filling, properties, metrics }
    }

    fn with_scan(
        &self,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(scan), true) if scan.is::<SharedScanExec>() => Ok(Arc::new(Self {
                scan,
                tasks: self.tasks,
                filling: self.filling.clone(),
                properties: Arc::clone(&self.properties),
                metrics: ExecutionPlanMetricsSet::new(),
            })),
            _ => internal_err!("InOrderExec has a shared scan as its child"),
        }
    }
}

impl DisplayAs for InOrderExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.tasks;
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "tasks={tasks}"),
            _ => write!(f, "InOrderExec: tasks={tasks}, per_chunk=({})", self.filling),
        }
    }
}

impl ExecutionPlan for InOrderExec {
    fn name(&self) -> &str {
        "InOrderExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.scan]
    }

    /// False, since the operator has its own tasks.
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
            return internal_err!("InOrderExec has a shared scan as its child");
        };
        if partition > 0 {
            return internal_err!("partition {partition} of 1");
        }
        let given_back = MetricBuilder::new(&self.metrics).global_counter("chunks_given_back");
        let in_order = Execution::new(scan, self.tasks, self.filling.clone(), given_back, context);
        // The tasks start when the first rows are requested. Before that they would only hold
        // chunks.
        let rows = stream::once(async move { in_order.start() }).try_flatten().boxed();
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let rows = rows.inspect_ok(move |batch| {
            batch.record_output(&baseline);
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(self.schema(), rows))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
