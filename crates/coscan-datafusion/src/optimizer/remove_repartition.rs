//! Small queries run in one task.
//!
//! The planner spreads the batches of one partition over as many tasks as there are processors. It also repartitions
//! rows by the hash of a key, to group them in the same number of tasks. For few rows that gains little, and each task
//! has to be scheduled. A lookup among long scans spent most of its time waiting.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
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
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::chunkwise::in_order::InOrderExec;
use crate::execution::exec::SharedScanExec;

/// A scan of at most this many rows is small. It has a few batches.
const ROWS_MAX: u64 = 1 << 17;

/// Removes the operators that spread rows over tasks where cheap operators work on one small scan. This applies to a
/// whole plan, or to the part below an operator that merges partitions.
#[derive(Debug)]
pub(crate) struct RemoveRepartition;

impl RemoveRepartition {
    pub(crate) const NAME: &'static str = "coscan_one_task";
}

impl PhysicalOptimizerRule for RemoveRepartition {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(remove_repartition) = in_one_task(&plan)? {
            return Ok(remove_repartition);
        }
        let change = |plan: Arc<dyn ExecutionPlan>| {
            let remove_repartition = if merges(&plan) { in_one_task(&plan)? } else { None };
            Ok(remove_repartition.map_or_else(|| Transformed::no(plan), Transformed::yes))
        };
        plan.transform_up(change).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Notes in scans that the user's query repartitions rows, before the optimizer adds repartitions of its own:
/// [`RemoveRepartition`] leaves such plans alone.
#[derive(Debug)]
pub(crate) struct UserPartitioning;

impl UserPartitioning {
    pub(crate) const NAME: &'static str = "coscan_user_partitioning";
}

impl PhysicalOptimizerRule for UserPartitioning {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(node.is::<RepartitionExec>()))? {
            return Ok(plan);
        }
        let note = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match plan.downcast_ref::<SharedScanExec>() {
                Some(scan) => Transformed::yes(Arc::new(scan.with_user_partitioning()) as _),
                None => Transformed::no(plan),
            })
        };
        plan.transform_up(note).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an operator merges all partitions into one, so that their number below it does not matter above it.
fn merges(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>()
}

/// Whether an operator does little work per row.
fn is_cheap(plan: &Arc<dyn ExecutionPlan>) -> bool {
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
fn in_one_task(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    Ok(gathered(plan)?.map(|gathered| gathered.plan))
}

/// A chain of cheap operators above a small scan, without the operators that spread rows.
struct Gathered {
    plan: Arc<dyn ExecutionPlan>,
    /// Whether the scan has one partition, which satisfies every required distribution.
    is_one: bool,
}

fn gathered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Gathered>> {
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
