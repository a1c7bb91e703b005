//! Small queries run in one task.
//!
//! The planner spreads the batches of one partition over as many tasks as there are processors. It also repartitions
//! rows by the hash of a key, to group them in the same number of tasks. For few rows that gains little, and each task
//! has to be scheduled. A lookup among long scans spent most of its time waiting.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{ExecutionPlanProperties, Partitioning};

use crate::chunkwise::in_order::InOrderExec;
use crate::execution::exec::SharedScanExec;
use crate::operator::Plan;
use crate::optimizer::rule::{Changed, Rule, change_up};

/// A scan of at most this many rows is small. It has a few batches.
const ROWS_MAX: u64 = 1 << 17;

/// Removes the operators that spread rows over tasks where cheap operators work on one small scan. This applies to a
/// whole plan, or to the part below an operator that merges partitions.
pub(crate) const REMOVE_REPARTITION: Rule =
    Rule::new("coscan_one_task", |plan, _| match in_one_task(plan)? {
        None => change_up(plan, |plan| if merges(plan) { in_one_task(plan) } else { Ok(None) }),
        whole => Ok(whole),
    });

/// Notes in scans that the user's query repartitions rows, before the optimizer adds repartitions of its own:
/// [`REMOVE_REPARTITION`] leaves such plans alone.
pub(crate) const USER_PARTITIONING: Rule = Rule::new("coscan_user_partitioning", |plan, _| {
    if !plan.exists(|node| Ok(node.is::<RepartitionExec>()))? {
        return Ok(None);
    }
    change_up(plan, |plan| {
        let scan = plan.downcast_ref::<SharedScanExec>();
        Ok(scan.map(|scan| Arc::new(scan.with_user_partitioning()) as _))
    })
});

/// Whether an operator merges all partitions into one, so that their number below it does not matter above it.
fn merges(plan: &Plan) -> bool {
    plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>()
}

/// Whether an operator does little work per row.
fn is_cheap(plan: &Plan) -> bool {
    let ranks = |window: &BoundedWindowAggExec| {
        window.window_expr().iter().all(|expression| expression.as_any().is::<StandardWindowExpr>())
    };
    merges(plan)
        || plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<SortExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<AnalyzeExec>()
        || plan.is::<InOrderExec>()
        || plan.downcast_ref::<BoundedWindowAggExec>().is_some_and(ranks)
}

/// The plan in one task, if it is a chain of cheap operators above a small scan.
fn in_one_task(plan: &Plan) -> Changed {
    Ok(gathered(plan)?.map(|gathered| gathered.plan))
}

/// A chain of cheap operators above a small scan, without the operators that spread rows.
struct Gathered {
    plan: Plan,
    /// Whether the scan has one partition, which satisfies every required distribution.
    is_one: bool,
}

fn gathered(plan: &Plan) -> Result<Option<Gathered>> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        let is_small = scan.row_count() <= ROWS_MAX && !scan.has_user_partitioning();
        let is_one = plan.output_partitioning().partition_count() == 1;
        return Ok(is_small.then(|| Gathered { plan: Arc::clone(plan), is_one }));
    }
    let spread = plan.downcast_ref::<RepartitionExec>();
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    if spread.is_none() && !is_cheap(plan) {
        return Ok(None);
    }
    let Some(Gathered { plan: input, is_one }) = gathered(input)? else { return Ok(None) };
    let is_even = |spread: &RepartitionExec| {
        matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_))
    };
    let plan = match spread.is_some_and(|spread| is_one || is_even(spread)) {
        true => input,
        false => replace_children_if_necessary(Arc::clone(plan), vec![input])?,
    };
    Ok(Some(Gathered { plan, is_one }))
}
