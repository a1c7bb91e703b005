//! Window operators, which rely on the order of their input.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};
use datafusion_distributed::{DistributedLeafExec, NetworkBoundaryExt};

/// Checks that all window operators of a distributed plan find their input in the order that they were planned for.
///
/// The planner knows for instance that a column is constant, since its rows were filtered, and so in order. Once the filter is
/// in another stage, a worker does not know it.
///
/// # Errors
/// If one does not.
pub(crate) fn check_windows(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    as_decoded(plan).map(drop)
}

/// A plan that knows as little of the inputs of its stages as the worker that decodes it.
fn as_decoded(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().map(as_decoded).collect::<Result<Vec<_>>>()?;
    if plan.is_network_boundary() || plan.is::<DistributedLeafExec>() {
        let partitions = plan.output_partitioning().partition_count();
        return Ok(Arc::new(EmptyExec::new(plan.schema()).with_partitions(partitions)));
    }
    if children.is_empty() {
        return Ok(Arc::clone(plan));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let plan = Arc::clone(plan).replace_children(children, options)?;
    if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        window.partition_by_sort_keys()?;
    }
    Ok(plan)
}
