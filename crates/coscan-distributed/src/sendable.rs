//! The operators that may travel.

use std::collections::HashMap;
use std::sync::Arc;

use coscan_datafusion::SharedScanExec;
use datafusion::common::exec_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
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
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    BroadcastExec, NetworkBroadcastExec, NetworkCoalesceExec, NetworkShuffleExec,
};

use crate::not_distributed::NotDistributed;
use crate::task_scan::TaskScan;

/// The most operators above each other in a plan, and the most levels of an expression. The form in which
/// plans are sent has room for 100 levels, and each of these takes two.
const DEPTH_MAX: usize = 40;

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
pub(crate) fn check_sendable(
    plan: &Arc<dyn ExecutionPlan>,
    functions: &KnownFunctions<'_>,
) -> Result<(), NotDistributed> {
    if depth(plan, |plan| plan.children().into_iter().cloned().collect()) > DEPTH_MAX {
        return Err(NotDistributed::TooDeep);
    }
    let mut reason = None;
    let mut scans = 0;
    let visited = plan.apply(|plan| {
        if let Some(scan) = plan.downcast_ref::<SharedScanExec>() {
            scans += 1;
            reason = scan.check_divisible().err().map(NotDistributed::Scan);
        } else if !is_operator(plan.as_ref()) {
            reason = Some(NotDistributed::Operator(plan.name().to_owned()));
        } else {
            reason = check_limits(plan.as_ref())
                .and_then(|()| check_window_functions(plan.as_ref()))
                .err();
        }
        plan.apply_expressions(&mut |expression| {
            reason = reason.take().or_else(|| functions.check(expression).err());
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if reason.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match (reason, visited) {
        (Some(reason), _) => Err(reason),
        (None, Err(error)) => Err(NotDistributed::NoPlan(error.strip_backtrace())),
        (None, Ok(_)) if scans > 0 => Ok(()),
        (None, Ok(_)) => Err(NotDistributed::NoSharedTable),
    }
}

/// Checks that a limit has 32 bits: the form in which plans are sent has room for no more.
fn check_limits(plan: &dyn ExecutionPlan) -> Result<(), NotDistributed> {
    let skipped = plan.downcast_ref::<GlobalLimitExec>().map(GlobalLimitExec::skip);
    let fits = |rows: usize| u32::try_from(rows).is_ok();
    match skipped.into_iter().chain(plan.fetch()).all(fits) {
        true => Ok(()),
        false => Err(NotDistributed::LargeLimit),
    }
}

/// Checks that no window function loses a part in the form in which plans are sent.
fn check_window_functions(plan: &dyn ExecutionPlan) -> Result<(), NotDistributed> {
    let windows = plan.downcast_ref().map(WindowAggExec::window_expr);
    let windows = windows.or(plan.downcast_ref().map(BoundedWindowAggExec::window_expr));
    match windows.into_iter().flatten().find(|window| !is_sent_whole(window)) {
        Some(window) => Err(NotDistributed::Window(window.name().to_owned())),
        None => Ok(()),
    }
}

/// Whether a window function has neither a FILTER nor IGNORE NULLS, nor is reversed. The engine shows these in its debug output
/// alone, where they come last.
fn is_sent_whole(window: &Arc<dyn WindowExpr>) -> bool {
    let expression = window.as_any();
    if let Some(standard) = expression.downcast_ref::<StandardWindowExpr>() {
        let function = format!("{:?}", standard.get_standard_func_expr());
        return function.ends_with("is_reversed: false, ignore_nulls: false }");
    }
    let aggregate = expression.downcast_ref().map(PlainAggregateWindowExpr::get_aggregate_expr);
    let aggregate =
        aggregate.or(expression.downcast_ref().map(SlidingAggregateWindowExpr::get_aggregate_expr));
    aggregate.is_some_and(|aggregate| !aggregate.is_reversed())
        && format!("{window:?}").ends_with("filter: None }")
}

/// The functions that workers know.
pub(crate) struct KnownFunctions<'a> {
    /// By name. `None`: functions are not checked.
    pub(crate) known: Option<&'a HashMap<String, Arc<ScalarUDF>>>,
    /// The session, whose settings some of them depend on.
    pub(crate) session: &'a SessionConfig,
}

impl KnownFunctions<'_> {
    /// Checks that workers evaluate an expression as this server does: functions are sent by their names alone.
    fn check(&self, expression: &Arc<dyn PhysicalExpr>) -> Result<(), NotDistributed> {
        if depth(expression, |part| part.children().into_iter().cloned().collect()) > DEPTH_MAX {
            return Err(NotDistributed::TooDeep);
        }
        let mut unknown = None;
        let visited = expression.apply(|part| {
            if let Some(call) = part.downcast_ref::<ScalarFunctionExpr>()
                && self.known.is_some_and(|known| !self.is_known(known, call.fun()))
            {
                unknown = Some(NotDistributed::Function(call.fun().name().to_owned()));
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        match (unknown, visited) {
            (None, Ok(_)) => Ok(()),
            (Some(unknown), _) => Err(unknown),
            (None, Err(_)) => Err(NotDistributed::TooDeep),
        }
    }

    fn is_known(&self, known: &HashMap<String, Arc<ScalarUDF>>, function: &ScalarUDF) -> bool {
        known.get(function.name()).is_some_and(|known| {
            let configured = known.inner().with_updated_config(self.session.options());
            function == known.as_ref() || configured.is_some_and(|known| *function == known)
        })
    }
}

/// The depth of a tree.
fn depth<T>(node: &T, children: fn(&T) -> Vec<T>) -> usize {
    let below = children(node);
    1 + below.iter().map(|child| depth(child, children)).max().unwrap_or(0)
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
