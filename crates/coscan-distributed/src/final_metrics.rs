//! Metrics of tasks that have sent none.
//!
//! The engine's EXPLAIN ANALYZE waits for the metrics of all tasks, also of one whose connection fails after its last row.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion_distributed::{MaybeEncoded, TaskMetrics, WorkerToCoordinatorMsg};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

/// The number of operators of a plan that is sent.
pub(crate) fn operator_count(plan: &MaybeEncoded<Arc<dyn ExecutionPlan>>) -> usize {
    let mut count = 0;
    if let MaybeEncoded::Decoded(plan) = plan {
        let visited = plan.apply(|_| {
            count += 1;
            Ok(TreeNodeRecursion::Continue)
        });
        visited.expect("counting does not fail");
    }
    count
}

/// The answers of a task of this many operators, which end with empty metrics if it sends none.
pub(crate) fn with_final_metrics(
    answers: BoxStream<'static, Result<WorkerToCoordinatorMsg>>,
    operators: usize,
) -> BoxStream<'static, Result<WorkerToCoordinatorMsg>> {
    let has_metrics = Arc::new(AtomicBool::new(false));
    let had_metrics = Arc::clone(&has_metrics);
    let answers = answers.inspect(move |answer| {
        if matches!(answer, Ok(WorkerToCoordinatorMsg::TaskMetrics(_))) {
            has_metrics.store(true, Ordering::Relaxed);
        }
    });
    let end = stream::once(async move {
        let none = WorkerToCoordinatorMsg::TaskMetrics(TaskMetrics {
            pre_order_plan_metrics: vec![MetricsSet::new(); operators],
            task_metrics: MetricsSet::new(),
        });
        (!had_metrics.load(Ordering::Relaxed)).then_some(Ok(none))
    });
    answers.chain(end.filter_map(ready)).boxed()
}
