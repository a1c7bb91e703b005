//! From a plan to a result that streams.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::ParamValues;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use crate::engine::errors::from_engine;
use crate::engine::plan::{Planned, Work, check, is_light, panicked};
use crate::engine::{Engine, Session};
use crate::queries::{Deadline, QueryError, QueryId, RunningQuery, cancelled};

impl Engine {
    /// Runs a statement: waits for a slot, if it needs one, and starts. Time limits count from then on. Dropping the
    /// future, or the result, cancels the query.
    ///
    /// # Errors
    /// If the queue is full, the query is cancelled or takes too long before its first rows, parameters do not fit, or
    /// it cannot start.
    pub async fn run(
        &self,
        session: &Session,
        planned: Planned,
        parameters: ParamValues,
    ) -> Result<RunningQuery, QueryError> {
        let plan = match planned.work {
            Work::Query(plan) => plan,
            Work::Session(statement) => {
                let batches = statement.run(session)?;
                return Ok(RunningQuery::ready(planned.schema, batches));
            }
        };
        let mut ticket = self.queries.register(&session.user, &planned.sql);
        if is_light(&plan) {
            ticket.start();
        } else {
            ticket.admit().await?;
        }
        let deadline = self.deadline(session);
        let cancel = ticket.cancel_token().clone();
        let starting = AssertUnwindSafe(self.start(session, ticket.id(), &plan, parameters));
        let started = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            error = deadline.passed() => Err(error),
            started = starting.catch_unwind() => started.unwrap_or_else(|_| Err(panicked("starting"))),
        };
        match started {
            Ok(batches) => {
                let schema = batches.schema();
                let batches = AssertUnwindSafe(batches).catch_unwind().map(|batch| match batch {
                    Ok(batch) => batch.map_err(from_engine),
                    Err(_) => Err(panicked("running")),
                });
                Ok(RunningQuery::start(ticket, schema, batches.boxed(), deadline))
            }
            Err(error) => {
                ticket.fail(&error);
                Err(error)
            }
        }
    }

    async fn start(
        &self,
        session: &Session,
        id: QueryId,
        plan: &Arc<LogicalPlan>,
        parameters: ParamValues,
    ) -> Result<SendableRecordBatchStream, QueryError> {
        let plan = LogicalPlan::clone(plan);
        let plan = plan.replace_params_with_values(&parameters).map_err(from_engine)?;
        check(&plan)?;
        let context = SessionContext::new_with_state(self.state(session, Some(id)));
        let started = async { context.execute_logical_plan(plan).await?.execute_stream().await };
        started.await.map_err(from_engine)
    }

    /// When a query that starts now must have ended.
    fn deadline(&self, session: &Session) -> Deadline {
        let limits: [(Option<Duration>, &'static str); 2] = [
            (self.limits.query_time_max, "query_time_max"),
            (session.settings().statement_timeout(), "statement_timeout"),
        ];
        let limits = limits.into_iter().filter_map(|(time, setting)| Some((time?, setting)));
        match limits.min() {
            Some((time, setting)) => Deadline { at: Instant::now().checked_add(time), setting },
            None => Deadline { at: None, setting: "" },
        }
    }
}
