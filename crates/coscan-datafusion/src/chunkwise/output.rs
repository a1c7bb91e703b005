//! The output of sandwich operators: one partition, which several tasks fill.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc::Sender;

use crate::execution::exec::SharedScanExec;
use crate::operator::{Operator, OperatorExec, Plan, only_input};

/// The properties of a plan of one partition.
pub(crate) fn one_partition(equivalence: EquivalenceProperties) -> Arc<PlanProperties> {
    let partitioning = Partitioning::UnknownPartitioning(1);
    let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
    let properties = PlanProperties::new(equivalence, partitioning, emission, bounded);
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

/// The scan below a sandwich of one table.
pub(super) fn only_scan(inputs: &[Plan]) -> Result<&SharedScanExec> {
    match only_input(inputs)?.downcast_ref() {
        Some(scan) => Ok(scan),
        None => internal_err!("a sandwich of one table has a shared scan as its input"),
    }
}

/// The output of a sandwich whose tasks are started by `start`. They start when the first rows are requested. Before
/// that they would only hold chunks.
pub(super) fn started_late<O: Operator>(
    plan: &OperatorExec<O>,
    start: impl Future<Output = Result<SendableRecordBatchStream>> + Send + 'static,
) -> SendableRecordBatchStream {
    let baseline = BaselineMetrics::new(&plan.metrics, 0);
    let rows = stream::once(start).try_flatten().boxed().inspect_ok(move |batch| {
        batch.record_output(&baseline);
    });
    Box::pin(cooperative(RecordBatchStreamAdapter::new(plan.schema(), rows)))
}

/// Sends all batches. Returns false if the receiver was dropped.
pub(super) async fn send_all(
    mut batches: SendableRecordBatchStream,
    output: &Sender<Result<RecordBatch>>,
) -> Result<bool> {
    while let Some(batch) = batches.next().await {
        if output.send(Ok(batch?)).await.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
