//! Executes statements over the workers.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::common::format::ExplainFormat;
use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_distributed::display_plan_ascii;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use crate::coordinator::Coordinator;
use crate::network_errors::{
    WorkersBusy, is_busy, is_memory_short, is_of_network, to_client_error,
};
use crate::planning::DistributedPlan;
use crate::query_description::QueryDescription;

/// The most time to refresh the list of workers when the lost one is known.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);

/// The time until workers that are busy are asked again: the first one, and the most, to which it doubles.
const BUSY_WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The time after which workers have freed the memory of tasks that have ended.
const FREED_AFTER: Duration = Duration::from_secs(1);

impl Coordinator {
    /// Executes a statement of a session with coscan on the workers, and returns once its first rows have come. If a worker
    /// is lost before that, the statement is planned and executed once more, on the others. While workers have too many
    /// queries, it waits. If there was no memory for it beside other queries of this coordinator, it is executed once more
    /// without them; if these take long, beside those that are left, as long as it would wait for busy workers.
    /// `context` makes the context of a session to execute its plan in. EXPLAIN shows the stages and the owners.
    ///
    /// # Errors
    /// [`NotDistributed`](crate::NotDistributed) if this server should execute it alone; [`WorkersBusy`] if workers have too many
    /// queries for too long; [`WorkerLost`](crate::WorkerLost); otherwise those of the planner and the operators.
    pub async fn execute(
        &self,
        session: &SessionState,
        statement: &LogicalPlan,
        description: &QueryDescription,
        context: &(dyn Fn(&SessionState) -> TaskContext + Send + Sync),
    ) -> Result<SendableRecordBatchStream> {
        if let LogicalPlan::Explain(explain) = statement {
            return self.explain(session, explain, description).await;
        }
        let deadline = Instant::now() + self.options.busy_timeout;
        let mut permit =
            timeout_at(deadline, self.acquire(1)).await.map_err(|_| WorkersBusy.into_error())??;
        let (mut lost, mut is_retry, mut is_alone) = (Vec::new(), false, false);
        let (mut busy_wait, mut short_until) = (BUSY_WAIT.0, None);
        loop {
            let had_others = self.has_other_queries();
            let planned = self.plan_without(session, statement, description, &lost).await?;
            let failure = planned.failure.clone();
            let context = context(&planned.session);
            match started(planned, context).await {
                Ok(rows) => {
                    let schema = rows.schema();
                    // Others may go on now, also if its client is slow.
                    let permit = permit.split(1);
                    let rows = rows.map(move |batch| {
                        let _until_the_last_row = &permit;
                        batch.map_err(|error| to_client_error(error, failure.worker()))
                    });
                    return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
                }
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(jittered(busy_wait)).await;
                    busy_wait = (2 * busy_wait).min(BUSY_WAIT.1);
                }
                Err(error) if is_of_network(&error) && !is_retry => {
                    log::warn!("a query is executed again, since a worker was lost: {error}");
                    is_retry = true;
                    lost.extend(failure.worker().cloned());
                    let refreshed = self.workers.refresh();
                    match lost.is_empty() {
                        true => refreshed.await,
                        // Others may be lost as well, and take their time to be noticed.
                        false => drop(timeout(REFRESH_TIMEOUT, refreshed).await),
                    }
                }
                Err(error)
                    if is_memory_short(&error)
                        && !is_alone
                        && (had_others || self.has_other_queries()) =>
                {
                    log::info!("a query waits to be executed alone, since memory was short");
                    drop(permit);
                    let until = *short_until
                        .get_or_insert_with(|| Instant::now() + self.options.busy_timeout);
                    let all =
                        timeout(self.options.alone_timeout, self.acquire(self.queries_max)).await;
                    is_alone = all.is_ok();
                    permit = match all {
                        Ok(all) => all?,
                        Err(_) if until <= Instant::now() => return Err(error),
                        // Others take long. Some have ended.
                        Err(_) => timeout_at(until, self.acquire(1)).await.map_err(|_| error)??,
                    };
                    tokio::time::sleep(FREED_AFTER + jittered(FREED_AFTER)).await;
                }
                Err(error) => return Err(to_client_error(error, failure.worker())),
            }
        }
    }

    async fn explain(
        &self,
        session: &SessionState,
        explain: &Explain,
        description: &QueryDescription,
    ) -> Result<SendableRecordBatchStream> {
        let planned = self.plan(session, &explain.plan, description).await?;
        let format = &explain.explain_format;
        if *format != ExplainFormat::Indent {
            return not_impl_err!(
                "EXPLAIN does not show a plan of workers in the format {format}: use EXPLAIN without FORMAT, or SET coscan.distributed = off"
            );
        }
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

/// Starts a statement, and waits for its first rows.
async fn started(
    planned: DistributedPlan,
    context: TaskContext,
) -> Result<SendableRecordBatchStream> {
    let rows = execute_stream(planned.plan, Arc::new(context))?;
    first_rows(planned.failure.end_on_failure(rows)).await
}

/// Waits for the first rows of a query.
///
/// # Errors
/// If the query fails before.
pub async fn first_rows(mut rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
    let (schema, first) = (rows.schema(), rows.next().await.transpose()?);
    let rows = stream::iter(first.map(Ok)).chain(rows);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// A time between a half and all of another, so that coordinators do not keep in step.
fn jittered(time: Duration) -> Duration {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    let half = time / 2;
    half + Duration::from_nanos(random % u64::try_from(half.as_nanos()).unwrap_or(1).max(1))
}
