//! Aggregations that a statement contains several times, such as a WITH query that is read twice, are executed once. The
//! engine writes a WITH query into the plan at each mention.
//!
//! `candidates` finds equal aggregations in the logical plan. `table` stands in their places while the rest of the
//! statement is planned, and becomes an `operator`, a consumer of the subplan. The first consumer to be read executes
//! the subplan and keeps all of its `rows` in memory for the others.

mod candidates;
pub(crate) mod operator;
mod rows;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;

use crate::operator::Plan;
use operator::CommonSubplanExec;

/// The statement with a consumer in each place of a subplan that it contains several times. `None` if it contains none.
/// `planner` plans subplans, after `prepare`.
///
/// # Errors
/// If the statement cannot be changed.
pub(crate) fn with_consumers(
    statement: &LogicalPlan,
    planner: &Arc<dyn QueryPlanner + Send + Sync>,
    prepare: impl Fn(&LogicalPlan) -> Result<LogicalPlan>,
) -> Result<Option<LogicalPlan>> {
    let common = candidates::common_aggregations(statement)?;
    if common.is_empty() {
        return Ok(None);
    }
    let mut scans = HashMap::with_capacity(common.len());
    for (number, (text, subplan)) in (1..).zip(common) {
        let prepared = prepare(&subplan)?;
        scans.insert(text, table::scan(number, &subplan, prepared, planner));
    }
    let replaced = statement.clone().transform_down_with_subqueries(|part| {
        if !candidates::is_aggregation(&part) {
            return Ok(Transformed::no(part));
        }
        Ok(match scans.get(&candidates::text(&part)) {
            Some(scan) => Transformed::new(scan.clone(), true, TreeNodeRecursion::Jump),
            None => Transformed::no(part),
        })
    })?;
    Ok(Some(replaced.data))
}

/// Whether all consumers in a plan share rows. If not, the plan is worse than one without them: filters stop at consumers.
pub(crate) fn all_share(plan: &Plan) -> Result<bool> {
    let mut all_share = true;
    plan.apply(|plan| {
        let consumer = plan.downcast_ref::<CommonSubplanExec>();
        all_share &= consumer.is_none_or(|consumer| consumer.operator.shares());
        Ok(if all_share { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(all_share)
}
