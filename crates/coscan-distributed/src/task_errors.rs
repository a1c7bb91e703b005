//! Errors of tasks, as coordinators can understand them.
//!
//! The engine sends the rows of a task from a task of its own that nobody joins: after a panic the rows would end as if they
//! were complete. And it sends errors as text, in which a lost connection to another worker looks like any other error, and which must not
//! be long.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::common::exec_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use datafusion_distributed::BroadcastExec;
use futures::{FutureExt, StreamExt, stream};

use crate::network_errors::to_task_error;

/// Wraps the plan of a task: a panic becomes an error, and other errors are made such that the coordinator understands them.
/// The number and order of operators stay the same, since their metrics are matched by position.
pub(crate) fn with_clear_errors(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    // The engine looks for these at the head.
    let is_for_engine = plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>();
    match (is_for_engine, plan.children().as_slice()) {
        (true, [input]) => {
            let input: Arc<dyn ExecutionPlan> = Arc::new(ErrorBoundaryExec(Arc::clone(input)));
            replaced(plan, vec![input])
        }
        _ => Ok(Arc::new(ErrorBoundaryExec(plan))),
    }
}

fn replaced(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// An operator whose panics and errors a coordinator can understand.
#[derive(Debug)]
struct ErrorBoundaryExec(Arc<dyn ExecutionPlan>);

impl DisplayAs for ErrorBoundaryExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(kind, f)
    }
}

impl ExecutionPlan for ErrorBoundaryExec {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(visit)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self(replaced(Arc::clone(&self.0), children)?)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let execute = AssertUnwindSafe(|| self.0.execute(partition, context));
        let batches = std::panic::catch_unwind(execute).unwrap_or_else(|panic| failed(&panic))?;
        let schema = batches.schema();
        // After a panic nothing is polled any more.
        let caught = stream::unfold(Some(batches), |batches| async move {
            let mut batches = batches?;
            match AssertUnwindSafe(batches.next()).catch_unwind().await {
                Ok(batch) => Some((batch?.map_err(to_task_error), Some(batches))),
                Err(panic) => Some((failed(&panic), None)),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, caught)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }
}

fn failed<T>(panic: &Box<dyn Any + Send>) -> Result<T> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    exec_err!("a task has panicked: {}", text.unwrap_or("its worker's log says where"))
}
