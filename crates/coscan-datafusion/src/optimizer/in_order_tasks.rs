//! Tables that are read in order have several tasks where that pays.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::execution_plan::{EmissionType, replace_children_if_necessary};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::chunkwise::in_order::{InOrder, InOrderExec};
use crate::chunkwise::leaf::LeafExec;
use crate::execution::exec::SharedScanExec;
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule};
use crate::optimizer::scan_path::{above_leaf, scan_below};

/// Executes scans in order, with the filters and projections above them, in several tasks ([`InOrderExec`]).
///
/// Scans below a limit are left out, since a task that works ahead would read chunks for rows that may not be needed.
///
/// It runs after [`NEEDED_ORDER`](super::needed_order::NEEDED_ORDER), and before the rule that repartitions rows for
/// filters.
pub(crate) const IN_ORDER_TASKS: Rule =
    Rule::new("coscan_in_order_tasks", |plan, config| with_tasks(plan, false, config));

/// The plan with several tasks for its scans in order. `may_stop` is whether operators above may not need all of its
/// rows.
fn with_tasks(plan: &Plan, may_stop: bool, config: &ConfigOptions) -> Changed {
    if plan.is::<InOrderExec>() {
        return Ok(None); // The rules have run before.
    }
    if let Some(scan) = scan_below(plan) {
        return if may_stop { Ok(None) } else { in_tasks(plan, scan, config) };
    }
    let (mut inputs, mut is_changed) = (Vec::new(), false);
    for (index, input) in plan.children().into_iter().enumerate() {
        let changed = with_tasks(input, may_stop_reading(plan, index, may_stop)?, config)?;
        is_changed |= changed.is_some();
        inputs.push(changed.unwrap_or_else(|| Arc::clone(input)));
    }
    is_changed.then(|| replace_children_if_necessary(Arc::clone(plan), inputs)).transpose()
}

/// Whether an operator may not read all rows of an input.
fn may_stop_reading(plan: &Plan, input: usize, may_stop: bool) -> Result<bool> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        // If the rows are in order already, at least by the first expression, the sort passes the
        // first ones on.
        let first = sort.expr().first().clone();
        let is_sorted = sort.input().equivalence_properties().ordering_satisfy([first])?;
        return Ok(is_sorted && (may_stop || sort.fetch().is_some()));
    }
    let reads_all =
        plan.pipeline_behavior() == EmissionType::Final || plan.is::<HashJoinExec>() && input == 0;
    let has_limit =
        plan.fetch().is_some() || plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>();
    Ok(!reads_all && (may_stop || has_limit))
}

/// Executes filters and projections above a scan in several tasks. Returns `None` if that does not pay.
fn in_tasks(plan: &Plan, scan: &SharedScanExec, config: &ConfigOptions) -> Changed {
    let tasks = scan.partitions_max().min(scan.needed_chunks().len()).min(scan.batch_count());
    let Some(properties) = scan.properties_in_order().filter(|_| tasks > 1) else {
        return Ok(None);
    };
    if has_limit(plan) {
        return Ok(None);
    }
    let leaf = Arc::new(LeafExec::of_chunks(scan.table_name(), properties));
    let filling = ProjectionPushdown::new().optimize(above_leaf(plan, leaf)?, config)?;
    let in_order = InOrder::above(filling, scan.with_workers(tasks), tasks)?;
    Ok((in_order.schema() == plan.schema()).then(|| Arc::new(in_order) as _))
}

/// Whether any of the filters or projections above a scan has a limit.
fn has_limit(plan: &Plan) -> bool {
    plan.fetch().is_some() || plan.children().into_iter().any(has_limit)
}
