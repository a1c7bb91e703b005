//! The execution of a query: by this server alone, or over workers.

use std::sync::Arc;

#[cfg(feature = "distributed")]
use coscan_distributed::{Coordinator, NotDistributed, first_rows};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;

use crate::sql::batch_rows::with_small_batches;
#[cfg(feature = "distributed")]
use crate::sql::distributed::{execute, with_reason};
#[cfg(feature = "distributed")]
use crate::sql::settings::Distribution;
use crate::sql::state::{QueryEnvironment, lists_functions};
use crate::sql::{Session, SqlService};

/// Who executes a query.
#[derive(Clone, Debug)]
pub(super) enum Placement {
    /// The server alone.
    Alone,
    /// The workers, if the query can be divided.
    #[cfg(feature = "distributed")]
    Workers(Coordinator),
    /// The server, which has no workers although the session wants them.
    #[cfg(feature = "distributed")]
    WithoutWorkers,
    /// The server; if it does not have the memory, the workers.
    #[cfg(feature = "distributed")]
    WorkersIfNeeded(Coordinator),
}

impl SqlService {
    /// Who executes the queries of a session.
    #[cfg(feature = "distributed")]
    pub(super) fn placement(&self, session: &Session) -> Placement {
        match (session.settings().distribution(), self.coordinator()) {
            (Distribution::Off, _) => Placement::Alone,
            (Distribution::On, Some(coordinator)) => Placement::Workers(coordinator.clone()),
            (Distribution::Retry, Some(coordinator)) => {
                Placement::WorkersIfNeeded(coordinator.clone())
            }
            (Distribution::On | Distribution::Retry, None) => Placement::WithoutWorkers,
        }
    }

    /// Who executes the queries of a session.
    #[cfg(not(feature = "distributed"))]
    pub(super) fn placement(&self, _: &Session) -> Placement {
        Placement::Alone
    }

    /// What it knows of distributed queries.
    #[cfg(not(feature = "distributed"))]
    pub(crate) fn known_workers(&self) -> crate::known_workers::KnownWorkers {
        crate::known_workers::KnownWorkers::default()
    }
}

impl Placement {
    /// Executes a query, which is not optimized yet.
    ///
    /// # Errors
    /// As the planner and the operators.
    pub(super) async fn execute(
        self,
        state: &SessionState,
        environment: &QueryEnvironment,
        statement: LogicalPlan,
    ) -> Result<SendableRecordBatchStream> {
        match self {
            Self::Alone => execute_alone(state, environment, &statement).await,
            #[cfg(feature = "distributed")]
            Self::Workers(coordinator) => {
                let reason = match execute(&coordinator, state, environment, &statement).await? {
                    Ok(rows) => return Ok(rows),
                    Err(reason) => reason,
                };
                execute_alone_because(state, environment, &statement, &reason).await
            }
            #[cfg(feature = "distributed")]
            Self::WithoutWorkers => {
                let reason = NotDistributed::NoMembers;
                execute_alone_because(state, environment, &statement, &reason).await
            }
            #[cfg(feature = "distributed")]
            Self::WorkersIfNeeded(coordinator) => {
                let executed = async {
                    first_rows(execute_alone(state, environment, &statement).await?).await
                };
                let failed = match executed.await {
                    Err(error) if is_out_of_memory(&error) => error,
                    rows => return rows,
                };
                match execute(&coordinator, state, environment, &statement).await? {
                    Ok(rows) => Ok(rows),
                    Err(reason) => Err(failed.context(reason.to_string())),
                }
            }
        }
    }
}

/// Whether a query failed because there is no memory for its operators.
#[cfg(feature = "distributed")]
fn is_out_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// Executes a query on this server. EXPLAIN also shows why workers do not.
#[cfg(feature = "distributed")]
async fn execute_alone_because(
    state: &SessionState,
    environment: &QueryEnvironment,
    statement: &LogicalPlan,
    reason: &NotDistributed,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let rows = execute_alone(state, environment, statement).await?;
    Ok(match statement {
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => with_reason(rows, reason),
        _ => rows,
    })
}

/// Executes a query on this server.
async fn execute_alone(
    state: &SessionState,
    environment: &QueryEnvironment,
    statement: &LogicalPlan,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let lists_functions = lists_functions(statement)?;
    let plan = state.optimize(statement)?;
    let state = with_small_batches(state, &plan)?;
    let planner = Arc::clone(state.query_planner());
    let plan = planner.create_physical_plan(&plan, &state).await?;
    execute_stream(plan, Arc::new(environment.task_context(&state, lists_functions)))
}
