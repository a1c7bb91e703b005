//! Small scans are not spread over tasks.
//!
//! The planner spreads the batches of one partition over as many tasks as there are processors. For a scan of few rows
//! that gains little, and each task waits for its turn behind whatever else runs: a lookup among long scans spent most of
//! its time so. Nor are their rows dealt out by the hash of a key, to be grouped in as many tasks.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};

use crate::exec::SharedScanExec;

/// A scan of at most so many rows is small: they are a few batches.
const ROWS_MAX: u64 = 1 << 17;

/// Takes out what spreads the batches of a small scan over tasks.
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
        let narrow = |plan: Arc<dyn ExecutionPlan>| {
            let narrowed = match spread_small_scan(&plan) {
                Some(scan) => Some(scan),
                None if merges(&plan) => in_one_task(&plan)?,
                None => None,
            };
            Ok(narrowed.map_or_else(|| Transformed::no(plan), Transformed::yes))
        };
        let plan = plan.transform_up(narrow).data()?;
        Ok(in_one_task(&plan)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        Self::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The small scan whose batches this operator spreads, if that is all that it does.
fn spread_small_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let spread = plan.downcast_ref::<RepartitionExec>()?;
    let is_even = matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_));
    let scan = spread.input().downcast_ref::<SharedScanExec>().filter(|_| is_even)?;
    is_small(scan).then(|| Arc::clone(spread.input()))
}

fn is_small(scan: &SharedScanExec) -> bool {
    scan.row_count() <= ROWS_MAX
}

/// Whether it makes one partition of all, so that nobody above notices how many there are below.
fn merges(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>()
}

/// The same without anything that spreads rows, if it is a chain of operators above a small scan of one partition: rows
/// of one partition are distributed as any of them could ask for.
fn in_one_task(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
        let is_one = is_small(scan) && plan.output_partitioning().partition_count() == 1;
        return Ok(is_one.then(|| Arc::clone(plan)));
    }
    let &[input] = plan.children().as_slice() else { return Ok(None) };
    Ok(match in_one_task(input)? {
        Some(input) if plan.is::<RepartitionExec>() => Some(input),
        Some(input) => Some(replace_children_if_necessary(Arc::clone(plan), vec![input])?),
        None => None,
    })
}
