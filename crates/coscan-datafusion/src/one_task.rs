//! Small scans are not spread over tasks.
//!
//! The planner spreads the batches of one partition over as many tasks as there are processors. For a scan of few rows
//! that gains little, and each task waits for its turn behind whatever else runs: a lookup among long scans spent most of
//! its time so.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use crate::exec::SharedScanExec;

/// A scan of at most so many rows is small: they are a few batches.
const ROWS_MAX: u64 = 1 << 17;

/// Takes out what only spreads the batches of a small scan.
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
            Ok(match spread_small_scan(&plan) {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(plan),
            })
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

/// The small scan whose batches this operator spreads, if that is all that it does.
fn spread_small_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let spread = plan.downcast_ref::<RepartitionExec>()?;
    let is_even = matches!(spread.partitioning(), Partitioning::RoundRobinBatch(_));
    let scan = spread.input().downcast_ref::<SharedScanExec>().filter(|_| is_even)?;
    (scan.row_count() <= ROWS_MAX).then(|| Arc::clone(spread.input()))
}
