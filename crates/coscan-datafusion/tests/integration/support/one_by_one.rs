//! An operator that executes the partitions of its input one after another, each in a task of its own, like engines
//! that send partitions to different places.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

/// Puts such an operator above each shared scan, and keeps the number of partitions.
pub(crate) fn scans(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let wrap = |plan: Arc<dyn ExecutionPlan>| {
        let partitions = plan.output_partitioning().partition_count();
        if ["OrderedAggregateExec", "CooperativeJoinExec"].contains(&plan.name()) {
            // These operators read their scans chunk by chunk.
            return Ok(Transformed::new(plan, false, TreeNodeRecursion::Jump));
        }
        if plan.name() != "SharedScanExec" || partitions == 1 {
            return Ok(Transformed::no(plan));
        }
        let one_by_one = Arc::new(OneByOneExec::new(plan));
        let spread =
            RepartitionExec::try_new(one_by_one, Partitioning::RoundRobinBatch(partitions))?;
        let spread: Arc<dyn ExecutionPlan> = Arc::new(spread);
        Ok(Transformed::new(spread, true, TreeNodeRecursion::Jump))
    };
    plan.transform_down(wrap).data()
}

#[derive(Debug)]
struct OneByOneExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl OneByOneExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for OneByOneExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OneByOneExec")
    }
}

impl ExecutionPlan for OneByOneExec {
    fn name(&self) -> &str {
        "OneByOneExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(children.remove(0))))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = Arc::clone(&self.input);
        let count = input.output_partitioning().partition_count();
        let batches = stream::iter(0..count).then(move |partition| {
            let own = TaskContext::new(
                None,
                context.session_id(),
                context.session_config().clone(),
                context.scalar_functions().clone(),
                context.higher_order_functions().clone(),
                context.aggregate_functions().clone(),
                context.window_functions().clone(),
                context.runtime_env(),
            );
            let stream = input.execute(partition, Arc::new(own));
            async move { stream }
        });
        let batches = batches.try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), batches)))
    }
}
