//! A consumer of a common subplan, as an operator of the engine.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};

use super::rows::SharedRows;
use crate::operator::{Operator, OperatorExec, Plan, only_input};

/// One of the consumers of a common subplan. Its input is a copy of the subplan.
#[derive(Clone, Debug)]
pub(crate) struct CommonSubplan {
    /// The number of the subplan in the statement, from 1 on.
    number: usize,
    subplan: Arc<LogicalPlan>,
    /// What it has in common with the other consumers. `None` until it is known that all are planned alike.
    shared: Option<Shared>,
}

#[derive(Clone, Debug)]
struct Shared {
    /// The number of this consumer, from 0 on.
    consumer: usize,
    consumers: usize,
    rows: Arc<SharedRows>,
}

/// An operator of a common subplan, with its input.
pub(crate) type CommonSubplanExec = OperatorExec<CommonSubplan>;

impl CommonSubplan {
    pub(super) fn new(number: usize, subplan: Arc<LogicalPlan>) -> Self {
        Self { number, subplan, shared: None }
    }

    /// Whether both are consumers of the same subplan.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.subplan, &other.subplan)
    }

    /// Whether it shares its rows with other consumers.
    pub(crate) fn shares(&self) -> bool {
        self.shared.is_some()
    }

    /// The consumer without others.
    ///
    /// # Errors
    /// If the operator cannot be made.
    pub(crate) fn unshared(exec: &CommonSubplanExec) -> Result<Plan> {
        let operator = Self { shared: None, ..exec.operator.clone() };
        Ok(Arc::new(OperatorExec::above(operator, exec.inputs.clone())?))
    }

    /// Lets consumers of a subplan, which are planned alike, share its rows.
    ///
    /// # Errors
    /// If the operators cannot be made.
    pub(crate) fn share(consumers: &[&CommonSubplanExec]) -> Result<Vec<Plan>> {
        let rows = SharedRows::new();
        let share = |(consumer, exec): (usize, &&CommonSubplanExec)| {
            let (consumers, rows) = (consumers.len(), Arc::clone(&rows));
            let mut operator = exec.operator.clone();
            operator.shared = Some(Shared { consumer, consumers, rows });
            Ok(Arc::new(OperatorExec::above(operator, exec.inputs.clone())?) as Plan)
        };
        consumers.iter().enumerate().map(share).collect()
    }
}

impl Operator for CommonSubplan {
    const NAME: &'static str = "CommonSubplanExec";
    const KEEPS_ORDER: bool = true;
    const KEEPS_ROWS: bool = true;
    /// All consumers need the same rows.
    const PASSES_FILTERS: bool = false;

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        Ok(Arc::clone(only_input(inputs)?.properties()))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        let shared = self.shared.iter();
        let fields =
            |shared: &Shared| format!("subplan={}, consumers={}", self.number, shared.consumers);
        shared.map(fields).collect()
    }

    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(&plan.inputs)?;
        let Some(shared) = &plan.operator.shared else { return input.execute(partition, context) };
        let rows = Arc::clone(&shared.rows);
        let rows = rows.read(shared.consumer, partition, Arc::clone(input), context);
        let baseline = BaselineMetrics::new(&plan.metrics, partition);
        let rows = stream::once(rows).try_flatten().boxed().inspect_ok(move |batch| {
            batch.record_output(&baseline);
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(plan.schema(), rows))))
    }
}
