//! Filters and projections above a scan.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::execution_plan::{ExecutionPlan, replace_children_if_necessary};
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

/// The place of a column of the table in the output of filters and projections above its scan.
pub(super) fn output_column(plan: &Plan, column: usize) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        return scan.projection().iter().position(|&projected| projected == column);
    }
    let input = output_column(plan.children().first()?, column)?;
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return projection.expr().iter().position(|projected| {
            let column = projected.expr.downcast_ref::<Column>();
            column.is_some_and(|column| column.index() == input)
        });
    }
    // A filter with a limit counts the rows that would be dropped.
    let filter = engine_filter(plan).filter(|filter| filter.fetch().is_none())?;
    match filter.projection() {
        Some(projection) => projection.iter().position(|&projected| projected == input),
        None => Some(input),
    }
}

/// Replaces the leaf below filters and projections.
pub(super) fn above_leaf(plan: &Plan, leaf: Plan) -> Result<Plan> {
    match plan.children().as_slice() {
        &[input] => replace_children_if_necessary(Arc::clone(plan), vec![above_leaf(input, leaf)?]),
        _ => Ok(leaf),
    }
}
