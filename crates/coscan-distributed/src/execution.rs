//! Executes statements over the workers.

use std::error::Error;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_distributed::display_plan_ascii;
use futures::{StreamExt, stream};
use tonic::{Code, Status};
use url::Url;

use crate::planning::Cluster;

/// A worker was lost after the first rows were returned, or again in the second attempt.
#[derive(Debug, thiserror::Error)]
#[error("a worker was lost while the query ran: {reason}; run the query again")]
pub struct WorkerLost {
    // Not a source: the error of the network is not what the statement failed of.
    reason: String,
}

impl WorkerLost {
    /// Whether a query failed because a worker was lost.
    #[must_use]
    pub fn is(error: &DataFusionError) -> bool {
        let DataFusionError::External(error) = error.find_root() else { return false };
        error.is::<Self>()
    }
}

impl Cluster {
    /// Executes a statement of a session with coscan on the workers, and returns once its first rows have come. If a worker
    /// is lost before that, the statement is planned and executed once more, on the others.
    /// `context` makes the context of a session to execute its plan in. EXPLAIN shows the stages and the owners.
    ///
    /// # Errors
    /// [`NotDistributed`](crate::NotDistributed) if its server should execute it alone; [`WorkerLost`]; otherwise as the
    /// planner and the operators.
    pub async fn execute(
        &self,
        session: &SessionState,
        statement: &LogicalPlan,
        query: Option<String>,
        context: &(dyn Fn(&SessionState) -> TaskContext + Send + Sync),
    ) -> Result<SendableRecordBatchStream> {
        if let LogicalPlan::Explain(explain) = statement {
            return self.explain(session, explain).await;
        }
        let mut is_retry = false;
        loop {
            let planned = self.plan(session, statement, query.clone()).await?;
            let context = Arc::new(context(&planned.session));
            let schema = planned.plan.schema();
            let started = execute_stream(planned.plan, context);
            let (first, rows) = match started {
                Ok(mut rows) => (rows.next().await.transpose(), Some(rows)),
                Err(error) => (Err(error), None),
            };
            match (first, rows) {
                (Ok(first), Some(rows)) => {
                    let rows = rows.map(|batch| batch.map_err(as_worker_lost));
                    let rows = stream::iter(first.map(Ok)).chain(rows);
                    return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
                }
                (Err(error), _) if !is_retry && self.has_lost(&error, &planned.workers).await => {
                    log::warn!("a query is executed again, since a worker was lost: {error}");
                    is_retry = true;
                }
                (Err(error), _) => return Err(as_worker_lost(error)),
                (Ok(_), None) => unreachable!("rows have started"),
            }
        }
    }

    /// Whether a query of these workers has failed because one of them was lost.
    async fn has_lost(&self, error: &DataFusionError, workers: &[Url]) -> bool {
        let may_be = matches!(
            error.find_root(),
            DataFusionError::External(_)
                | DataFusionError::Execution(_)
                | DataFusionError::IoError(_)
        );
        if !may_be {
            return false;
        }
        self.workers.refresh().await;
        let left = self.workers.get_urls().unwrap_or_default();
        is_of_network(error) || workers.iter().any(|worker| !left.contains(worker))
    }

    async fn explain(
        &self,
        session: &SessionState,
        explain: &Explain,
    ) -> Result<SendableRecordBatchStream> {
        let planned = self.plan(session, &explain.plan, None).await?;
        let logical = session.optimize(&explain.plan)?;
        let stages = display_plan_ascii(planned.plan.as_ref(), false);
        let rows = [
            ("logical_plan", logical.display_indent().to_string()),
            ("distributed_plan", stages),
            ("chunk_by_chunk", "off (distributed)".to_owned()),
        ];
        let [kinds, plans]: [ArrayRef; 2] = [
            Arc::new(StringArray::from_iter_values(rows.iter().map(|(kind, _)| kind))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, plan)| plan))),
        ];
        let schema = Arc::new(explain.schema.as_arrow().clone());
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![kinds, plans])?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Ok(batch)]))))
    }
}

/// The error of a query, as a lost worker if it is one of the network.
fn as_worker_lost(error: DataFusionError) -> DataFusionError {
    match is_of_network(&error) {
        true => DataFusionError::External(Box::new(WorkerLost { reason: error.strip_backtrace() })),
        false => error,
    }
}

/// Whether an error came from a connection. Errors of operators travel as what they are.
fn is_of_network(error: &DataFusionError) -> bool {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(status) = error.downcast_ref::<Status>() {
            // Others, such as that of a message that is too long, would be the same again.
            return matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled);
        }
        if error.is::<tonic::transport::Error>() {
            return true;
        }
        source = match error.downcast_ref() {
            Some(DataFusionError::External(error)) => Some(error.as_ref()),
            Some(DataFusionError::Shared(error)) => Some(error.as_ref()),
            Some(DataFusionError::Context(_, error)) => Some(error.as_ref()),
            _ => error.source(),
        };
    }
    false
}
