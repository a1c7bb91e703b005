//! Pushes the order of a top-k down to the scan, also through filters, where DataFusion's own rule stops.

use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::{ExecutionPlan, SortOrderPushdownResult};

use crate::execution::exec::SharedScanExec;
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule};
use crate::optimizer::sorts::{change_scan, change_sort_inputs};

/// Sets the order of a top-k in the scans below it. It runs before dynamic filters are pushed down.
pub(crate) const TOP_K_PUSHDOWN: Rule = Rule::new("coscan_top_k_pushdown", |plan, _| {
    change_sort_inputs(plan, |sort| match sort.fetch() {
        Some(_) => with_order(sort.input(), sort.expr()),
        None => Ok(None),
    })
});

/// Pushes an order down to the scan of a plan. Returns `None` if the scan cannot use it.
fn with_order(plan: &Plan, order: &[PhysicalSortExpr]) -> Changed {
    let push_down = |scan: &SharedScanExec, order: &[PhysicalSortExpr]| {
        Ok(match scan.try_pushdown_sort(order)? {
            SortOrderPushdownResult::Inexact { inner } => Some(inner),
            _ => None,
        })
    };
    change_scan(plan, order, &push_down)
}
