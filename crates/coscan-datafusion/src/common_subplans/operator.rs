//! A common subplan as an operator of the engine.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use super::rows::SharedRows;
use crate::operator::{Operator, OperatorExec, Plan, only_input};

/// One of the places of a common subplan.
#[derive(Clone, Debug)]
pub(crate) struct CommonSubplan {
    subplan: Arc<LogicalPlan>,
    /// What it has in common with the other places. `None` until it is known that all are planned alike.
    shared: Option<Shared>,
}

#[derive(Clone, Debug)]
struct Shared {
    /// Its number among the subplans of the statement, from 1 on.
    number: usize,
    /// The number of this place, from 0 on.
    place: usize,
    places: usize,
    rows: Arc<SharedRows>,
}

/// An operator of a common subplan, with its input.
pub(crate) type CommonSubplanExec = OperatorExec<CommonSubplan>;

impl CommonSubplan {
    pub(super) fn new(subplan: Arc<LogicalPlan>) -> Self {
        Self { subplan, shared: None }
    }

    /// Whether both are places of the same subplan.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.subplan, &other.subplan)
    }

    /// These places, which are planned alike, as those of the subplan with this number.
    ///
    /// # Errors
    /// If the operators cannot be made.
    pub(crate) fn share(places: &[&CommonSubplanExec], number: usize) -> Result<Vec<Plan>> {
        let partitions = places.first().map_or(0, |exec| {
            let properties = ExecutionPlan::properties(*exec);
            properties.output_partitioning().partition_count()
        });
        let rows = SharedRows::new(places.len(), partitions);
        let share = |(place, exec): (usize, &&CommonSubplanExec)| {
            let shared = Shared { number, place, places: places.len(), rows: Arc::clone(&rows) };
            let subplan = Arc::clone(&exec.operator.subplan);
            let operator = Self { subplan, shared: Some(shared) };
            Ok(Arc::new(OperatorExec::above(operator, exec.inputs.clone())?) as Plan)
        };
        places.iter().enumerate().map(share).collect()
    }
}

impl Operator for CommonSubplan {
    const NAME: &'static str = "CommonSubplanExec";
    const KEEPS_ORDER: bool = true;
    const KEEPS_ROWS: bool = true;
    /// All places need the same rows.
    const PASSES_FILTERS: bool = false;

    fn properties(&self, inputs: &[Plan]) -> Result<Arc<PlanProperties>> {
        Ok(Arc::clone(only_input(inputs)?.properties()))
    }

    fn fields(&self, _: &[Plan]) -> Vec<String> {
        let shared = self.shared.iter();
        shared
            .map(|shared| format!("subplan={}, places={}", shared.number, shared.places))
            .collect()
    }

    fn execute(
        plan: &OperatorExec<Self>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = only_input(&plan.inputs)?;
        let Some(shared) = &plan.operator.shared else { return input.execute(partition, context) };
        let rows = shared.rows.read(shared.place, partition, input, context);
        let baseline = BaselineMetrics::new(&plan.metrics, partition);
        let rows = rows.inspect_ok(move |batch| {
            batch.record_output(&baseline);
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(plan.schema(), rows)))
    }
}
