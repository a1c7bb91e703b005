//! Queries over several workers.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use arrow::array::{RecordBatch, StringArray};
use coscan_datafusion::CoscanOptions;
use coscan_distributed::{
    Coordinator, MakeMemoryPool, NotDistributed, RegisterFunctions, RunningTasks, WorkerHealth,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, ScalarUDF};
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::runtime::Handle;

use crate::known_workers::KnownWorkers;
use crate::sql::SqlService;
use crate::sql::batch_rows::with_small_batches;
use crate::sql::memory::QueryLimits;
use crate::sql::query_threads::QueryThreads;
use crate::sql::state::QueryEnvironment;

/// What a server needs for distributed queries, as a coordinator and as a worker.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The coordinator of this server's queries and the health of its workers, if it has workers.
    coordinator: OnceLock<(Coordinator, Arc<WorkerHealth>)>,
    /// The tasks of other servers, if it is a worker.
    running: OnceLock<RunningTasks>,
    /// Threads for them.
    task_threads: OnceLock<QueryThreads>,
}

impl SqlService {
    /// Divides queries of sessions that want it among workers.
    pub(crate) fn divide_among(&self, workers: Arc<WorkerHealth>, coordinator: Coordinator) {
        let _only_once = self.distributed.coordinator.set((coordinator, workers));
    }

    /// The coordinator of this server's queries, if it has workers.
    pub(super) fn coordinator(&self) -> Option<&Coordinator> {
        self.distributed.coordinator.get().map(|(coordinator, _)| coordinator)
    }

    /// What it knows of distributed queries.
    pub(crate) fn known_workers(&self) -> KnownWorkers {
        let workers = self.distributed.coordinator.get().map(|(_, workers)| workers);
        KnownWorkers { workers: workers.cloned(), running: self.distributed.running.get().cloned() }
    }

    /// Registers the tasks that run for other servers.
    pub(crate) fn set_running_tasks(&self, tasks: RunningTasks) {
        let _only_once = self.distributed.running.set(tasks);
    }

    /// The configuration of its sessions.
    pub(crate) fn coscan(&self) -> &CoscanOptions {
        &self.coscan
    }

    /// What the operators of its queries share.
    pub(crate) fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(self.base.runtime_env())
    }

    /// The functions that all sessions have, by name.
    pub(crate) fn known_functions(&self) -> &HashMap<String, Arc<ScalarUDF>> {
        self.base.scalar_functions()
    }

    /// The threads that execute tasks of other servers. They are started when they are first asked for.
    ///
    /// # Errors
    /// If the system cannot create them.
    pub(crate) fn task_threads(&self) -> io::Result<Handle> {
        if self.distributed.task_threads.get().is_none() {
            let cores = available_parallelism().map_or(1, usize::from);
            let _only_once = self.distributed.task_threads.set(QueryThreads::new(cores)?);
        }
        Ok(self.distributed.task_threads.get().map_or_else(Handle::current, QueryThreads::handle))
    }

    /// Makes the memory pools of queries whose tasks this server executes for others. The limits are those of this server and of
    /// the session.
    pub(crate) fn make_memory_pool(&self) -> MakeMemoryPool {
        let limits = Arc::clone(&self.memory_limits);
        Arc::new(move |query| limits.pool_for_tasks(&QueryLimits::of(query)))
    }

    /// Returns what registers the functions of this server in the session of a task.
    pub(crate) fn register_functions(&self) -> RegisterFunctions {
        let base = self.base.clone();
        Arc::new(move |state| {
            for function in base.scalar_functions().values() {
                state.register_udf(Arc::clone(function))?;
            }
            for function in base.aggregate_functions().values() {
                state.register_udaf(Arc::clone(function))?;
            }
            for function in base.window_functions().values() {
                state.register_udwf(Arc::clone(function))?;
            }
            Ok(())
        })
    }
}

/// Executes a query over the workers, and waits for its first rows. Returns the reason if its server should execute it.
///
/// # Errors
/// Those of the query.
pub(super) async fn execute(
    coordinator: &Coordinator,
    state: &SessionState,
    environment: &QueryEnvironment,
    statement: &LogicalPlan,
) -> Result<Result<SendableRecordBatchStream, NotDistributed>> {
    let query = environment.memory.describe(environment.id.to_string());
    let state = &with_small_batches(state, &state.optimize(statement)?)?;
    let context = |state: &SessionState| environment.task_context(state, false);
    match coordinator.execute(state, statement, &query, &context).await {
        Ok(rows) => Ok(Ok(rows)),
        Err(error) => match NotDistributed::of(&error) {
            Some(reason) => Ok(Err(reason.clone())),
            None => Err(error),
        },
    }
}

/// The plan of EXPLAIN, with the reason why it is not distributed.
pub(super) fn with_reason(
    explained: SendableRecordBatchStream,
    reason: &NotDistributed,
) -> SendableRecordBatchStream {
    let schema = explained.schema();
    let row = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(StringArray::from(vec!["distributed_plan"])),
            Arc::new(StringArray::from(vec![reason.to_string()])),
        ],
    );
    let row = stream::iter([row.map_err(DataFusionError::from)]);
    Box::pin(RecordBatchStreamAdapter::new(schema, explained.chain(row)))
}
