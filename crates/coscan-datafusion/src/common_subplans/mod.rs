//! Aggregations that a statement contains several times, such as a WITH query that is read twice, are executed once. The
//! engine writes a WITH query into the plan at each mention.
//!
//! `candidates` finds equal aggregations in the logical plan. `table` stands in their places while the rest of the
//! statement is planned. `operator` is there in the physical plan: the first one to be executed executes the subplan
//! and keeps all of its `rows` in memory for the others.

mod candidates;
pub(crate) mod operator;
mod rows;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;

use crate::operator::Plan;

/// The aggregations that a statement contains several times.
///
/// # Errors
/// If the statement cannot be walked.
pub(crate) fn common_subplans(statement: &LogicalPlan) -> Result<Vec<LogicalPlan>> {
    candidates::common_aggregations(statement)
}

/// A session that plans subplans without the rules of the physical optimizer, which run once for the whole statement.
/// `None` if the session is none of the engine's own.
pub(crate) fn without_optimizer(session: &dyn Session) -> Option<SessionState> {
    let state = session.as_any().downcast_ref::<SessionState>()?.clone();
    let builder = SessionStateBuilder::new_from_existing(state);
    Some(builder.with_physical_optimizer_rules(Vec::new()).build())
}

/// Replaces each place of these subplans by the rows of one.
///
/// # Errors
/// If the statement cannot be changed.
pub(crate) fn replace(
    statement: &LogicalPlan,
    subplans: Vec<(LogicalPlan, Plan)>,
) -> Result<LogicalPlan> {
    #[expect(clippy::mutable_key_type, reason = "plans do not change")]
    let mut scans = HashMap::with_capacity(subplans.len());
    for (number, (subplan, input)) in (1..).zip(subplans) {
        let scan = table::scan(number, Arc::new(subplan.clone()), input)?;
        scans.insert(subplan, scan);
    }
    let replaced = statement.clone().transform_down_with_subqueries(|part| {
        let scan = candidates::is_aggregation(&part).then(|| scans.get(&part)).flatten();
        Ok(match scan {
            Some(scan) => Transformed::new(scan.clone(), true, TreeNodeRecursion::Jump),
            None => Transformed::no(part),
        })
    })?;
    Ok(replaced.data)
}
