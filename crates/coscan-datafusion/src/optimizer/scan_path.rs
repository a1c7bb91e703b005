//! Filters and projections above a scan.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::execution::exec::SharedScanExec;

/// The scan below filters and projections.
pub(super) fn scan_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&SharedScanExec> {
    if plan.is::<FilterExec>() || plan.is::<ProjectionExec>() {
        return scan_below(plan.children().first()?);
    }
    plan.downcast_ref::<SharedScanExec>()
}

/// Replaces the leaf below filters and projections.
pub(super) fn above_leaf(
    plan: &Arc<dyn ExecutionPlan>,
    leaf: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match plan.children().as_slice() {
        &[input] => replace_children_if_necessary(Arc::clone(plan), vec![above_leaf(input, leaf)?]),
        _ => Ok(leaf),
    }
}
