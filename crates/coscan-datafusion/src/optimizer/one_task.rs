//! Small queries are one task.
//!
//! The planner spreads the batches of one partition over as many tasks as there are processors, and deals rows out by the
//! hash of a key, to be grouped in as many tasks. For few rows that gains little, and each task waits for its turn behind
//! whatever else runs: a lookup among long scans spent most of its time so.

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

use crate::execution::exec::SharedScanExec;

/// A scan of at most so many rows is small: they are a few batches.
const ROWS_MAX: u64 = 1 << 17;

/// Takes out what spreads rows over tasks where all the work is on the rows of one small scan, and little for each: in a
/// whole plan, or in the part of one that ends where its partitions are made one.
#[derive(Debug)]
pub(crate) struct OneTask;

impl OneTask {
    pub(crate) const NAME: &'static str = "coscan_one_task";
}

impl PhysicalOptimizerRule for OneTask {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(narrowed) = in_one_task(&plan)? {
            return Ok(narrowed);
        }
        let narrow = |plan: Arc<dyn ExecutionPlan>| {
            let narrowed = if merges(&plan) { in_one_task(&plan)? } else { None };
            Ok(narrowed.map_or_else(|| Transformed::no(plan), Transformed::yes))
        };
        plan.transform_up(narrow).data()
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Notes in scans that somebody asked for partitions of their rows, before the planner spreads any: [`OneTask`] leaves
/// such plans alone.
#[derive(Debug)]
pub(crate) struct AskedForPartitions;

impl AskedForPartitions {
    pub(crate) const NAME: &'static str = "coscan_asked_for_partitions";
}

impl PhysicalOptimizerRule for AskedForPartitions {
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
                Some(scan) => Transformed::yes(Arc::new(scan.with_partitions_asked_for()) as _),
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

/// Whether it makes one partition of all, so that nobody above notices how many there are below.
fn merges(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>()
}

/// Whether it does little for each row.
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
        || plan.downcast_ref::<BoundedWindowAggExec>().is_some_and(ranks)
}

/// The same without what spreads rows, if it is a chain of cheap operators above a small scan.
fn in_one_task(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    Ok(unspread(plan)?.map(|unspread| unspread.plan))
}

/// A chain of cheap operators above a small scan, without what spreads rows.
struct Unspread {
    plan: Arc<dyn ExecutionPlan>,
    /// Rows of one partition are distributed as any operator could ask for.
    is_one: bool,
}

fn unspread(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Unspread>> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        let is_small = scan.row_count() <= ROWS_MAX && !scan.has_partitions_asked_for();
        let is_one = plan.output_partitioning().partition_count() == 1;
        return Ok(is_small.then(|| Unspread { plan: Arc::clone(plan), is_one }));
    }
    let spread = plan.downcast_ref::<RepartitionExec>();
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    if spread.is_none() && !is_cheap(plan) {
        return Ok(None);
    }
    let Some(Unspread { plan: input, is_one }) = unspread(input)? else { return Ok(None) };
    let is_even = |spread: &RepartitionExec| {
        matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_))
    };
    let plan = match spread.is_some_and(|spread| is_one || is_even(spread)) {
        true => input,
        false => replace_children_if_necessary(Arc::clone(plan), vec![input])?,
    };
    Ok(Some(Unspread { plan, is_one }))
}
