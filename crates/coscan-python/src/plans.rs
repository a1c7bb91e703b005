//! Plans of the Python package `datafusion`, and rows of those that cannot be executed here.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::logical_plan_from_bytes;
use pyo3::prelude::*;

use crate::capsules;

/// The reason why a plan is not executed here.
pub(crate) enum PlanError {
    /// It needs what this session does not have, such as functions in Python.
    NotHere(DataFusionError),
    /// It cannot be executed at all.
    Failed(DataFusionError),
}

/// A query from the bytes of a plan.
pub(crate) async fn decoded(context: &SessionContext, plan: &[u8]) -> Result<DataFrame, PlanError> {
    let plan = logical_plan_from_bytes(plan, &context.task_ctx()).map_err(PlanError::NotHere)?;
    let query = context.execute_logical_plan(plan).await.map_err(PlanError::Failed)?;
    query.clone().create_physical_plan().await.map_err(PlanError::Failed)?;
    Ok(query)
}

/// The rows of an object of Python, which computes them for each execution.
pub(crate) fn foreign(
    context: &SessionContext,
    schema: &SchemaRef,
    rows: Py<PyAny>,
) -> EngineResult<DataFrame> {
    let rows = Foreign { schema: Arc::clone(schema), rows: Arc::new(rows) };
    let table = StreamingTable::try_new(Arc::clone(schema), vec![Arc::new(rows)])?;
    context.read_table(Arc::new(table))
}

#[derive(Debug)]
struct Foreign {
    schema: SchemaRef,
    rows: Arc<Py<PyAny>>,
}

impl PartitionStream for Foreign {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = Arc::clone(&self.rows);
        let mut output = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), 2);
        let sender = output.tx();
        output.spawn_blocking(move || {
            // Whoever asked for the rows waits without the interpreter.
            let reader = Python::try_attach(|py| capsules::reader(rows.bind(py)));
            let exits = || DataFusionError::Execution("the interpreter exits".to_owned());
            let reader = reader.ok_or_else(exits)?;
            let reader = reader.map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            for batch in reader {
                let batch = batch.map_err(DataFusionError::from);
                if sender.blocking_send(batch).is_err() {
                    break;
                }
            }
            Ok(())
        });
        output.build()
    }
}
