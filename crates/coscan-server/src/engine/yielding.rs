//! Joins that yield: DataFusion lets a task go on while its input has batches, and one batch of an input may become
//! millions of batches of a join. The task would keep its thread for minutes, also after its query was cancelled.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::unnest::UnnestExec;

/// Lets operators that make many batches of one yield between them. The last of all rules: others look for joins.
#[derive(Debug)]
pub(super) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn name(&self) -> &str {
        "YieldingJoins"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = plan.transform_up(|plan| {
            Ok(if multiplies(plan.as_ref()) {
                Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _)
            } else {
                Transformed::no(plan)
            })
        });
        Ok(wrapped?.data)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an operator may make many batches of one.
fn multiplies(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<CrossJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<UnnestExec>()
}
