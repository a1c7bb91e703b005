//! The output of sandwich operators: one partition, which several tasks fill.

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::{Partitioning, PlanProperties};
use futures::StreamExt;
use tokio::sync::mpsc::Sender;

/// The properties of a plan of one partition.
pub(super) fn one_partition(
    equivalence: EquivalenceProperties,
    emission: EmissionType,
) -> PlanProperties {
    let partitioning = Partitioning::UnknownPartitioning(1);
    PlanProperties::new(equivalence, partitioning, emission, Boundedness::Bounded)
        .with_scheduling_type(SchedulingType::Cooperative)
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
