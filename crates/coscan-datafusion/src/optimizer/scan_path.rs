//! Filters and projections above a scan.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::execution::exec::SharedScanExec;
use crate::filtering::engine_filter;
use crate::operator::Plan;

/// The scan below filters and projections.
pub(crate) fn scan_below(plan: &Plan) -> Option<&SharedScanExec> {
    if engine_filter(plan).is_some() || plan.is::<ProjectionExec>() {
        return scan_below(plan.children().first()?);
    }
    plan.downcast_ref::<SharedScanExec>()
}

/// Replaces the leaf below filters and projections.
pub(super) fn above_leaf(plan: &Plan, leaf: Plan) -> Result<Plan> {
    match plan.children().as_slice() {
        &[input] => replace_children_if_necessary(Arc::clone(plan), vec![above_leaf(input, leaf)?]),
        _ => Ok(leaf),
    }
}
