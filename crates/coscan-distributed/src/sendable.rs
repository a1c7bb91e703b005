//! The operators that may travel.

use std::sync::Arc;

use coscan_datafusion::SharedScanExec;
use datafusion::common::exec_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion_distributed::{
    BroadcastExec, NetworkBroadcastExec, NetworkCoalesceExec, NetworkShuffleExec,
};

use crate::not_distributed::NotDistributed;
use crate::task_scan::TaskScan;

/// Whether an operator is of the kinds that a coordinator sends and a worker accepts, apart from scans: those that compute.
/// None of them reads or writes anything but what other workers send.
fn is_operator(plan: &dyn ExecutionPlan) -> bool {
    macro_rules! is_any {
        ($($operator:ty),* $(,)?) => { false $(|| plan.is::<$operator>())* };
    }
    is_any!(
        AggregateExec,
        BoundedWindowAggExec,
        BroadcastExec,
        CoalescePartitionsExec,
        CooperativeExec,
        CrossJoinExec,
        EmptyExec,
        FilterExec,
        GlobalLimitExec,
        HashJoinExec,
        InterleaveExec,
        LocalLimitExec,
        NestedLoopJoinExec,
        NetworkBroadcastExec,
        NetworkCoalesceExec,
        NetworkShuffleExec,
        PlaceholderRowExec,
        ProjectionExec,
        RepartitionExec,
        SortExec,
        SortMergeJoinExec,
        SortPreservingMergeExec,
        UnionExec,
        UnnestExec,
        WindowAggExec,
    )
}

/// Checks that workers can execute all parts of a plan.
///
/// # Errors
/// With the reason why they cannot.
pub(crate) fn check_sendable(plan: &Arc<dyn ExecutionPlan>) -> Result<(), NotDistributed> {
    let mut reason = None;
    let mut scans = 0;
    let visited = plan.apply(|plan| {
        if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
            scans += 1;
            reason = scan.chunks_to_divide().err().map(NotDistributed::Scan);
        } else if !is_operator(plan.as_ref()) {
            reason = Some(NotDistributed::Operator(plan.name().to_owned()));
        }
        Ok(if reason.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match (reason, visited) {
        (Some(reason), _) => Err(reason),
        (None, Ok(_)) if scans > 0 => Ok(()),
        _ => Err(NotDistributed::NoSharedTable),
    }
}

/// Checks that a plan that was sent to this worker reads only by scans of tasks, and writes nothing.
///
/// # Errors
/// With the name of an operator that workers do not execute.
pub(crate) fn check_received(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    plan.apply(|plan| {
        if is_operator(plan.as_ref()) || plan.is::<TaskScan>() {
            return Ok(TreeNodeRecursion::Continue);
        }
        exec_err!(
            "workers do not execute {}: start all servers with the same version of coscan",
            plan.name()
        )
    })?;
    Ok(())
}
