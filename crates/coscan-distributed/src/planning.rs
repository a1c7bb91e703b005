//! Plans statements for several workers.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_datafusion::{CoscanOptions, for_workers};
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion_distributed::{
    DistributedExec, DistributedExt, SessionStateBuilderExt, WorkerResolver,
};
use url::Url;

use crate::codec::TaskScanCodec;
use crate::coordinator::Coordinator;
use crate::not_distributed::NotDistributed;
use crate::options::{Workers, options_of};
use crate::plan_size::check_files;
use crate::query_description::QueryDescription;
use crate::scan_tasks::{desired_tasks, divide, route_to_owners};
use crate::sendable::{KnownFunctions, check_sendable};
use crate::session_header::SessionHeader;
use crate::watched_channels::{FirstFailure, WatchedChannels};
use crate::window_order::check_windows;

/// The least and the most bytes that wait on a connection between two workers, beside one batch. The engine takes them whether
/// or not there is memory.
const BUFFER_BYTES: (u64, u64) = (1 << 20, 16 << 20);

/// Between these bounds, the buffers of all connections have a sixteenth of the memory.
const BUFFERS_PART: u64 = 16;

/// A plan that workers execute.
#[derive(Clone, Debug)]
pub struct DistributedPlan {
    /// The plan of one partition, whose stages are sent when it is executed.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The session to execute it in.
    pub session: SessionState,
    /// The first failure of a connection to one of them.
    pub(crate) failure: FirstFailure,
}

impl Coordinator {
    /// Plans a statement of a session with coscan, which is not optimized yet.
    ///
    /// # Errors
    /// [`NotDistributed`] if the coordinator should execute the statement itself. That includes statements that cannot be planned
    /// at all.
    pub async fn plan(
        &self,
        session: &SessionState,
        statement: &LogicalPlan,
        description: &QueryDescription,
    ) -> Result<DistributedPlan> {
        self.plan_without(session, statement, description, &[]).await
    }

    /// Plans a statement for those workers that are not known to be lost.
    pub(crate) async fn plan_without(
        &self,
        session: &SessionState,
        statement: &LogicalPlan,
        description: &QueryDescription,
        lost: &[Url],
    ) -> Result<DistributedPlan> {
        let failure = FirstFailure::default();
        let session = self.session(session, description, lost, failure.clone())?;
        let plan = session.create_physical_plan(statement).await.map_err(no_plan)?;
        if !plan.exists(|plan| Ok(plan.is::<DistributedExec>()))? {
            return Err(NotDistributed::OneTask.into_error());
        }
        check_files(&plan)?;
        check_windows(&plan).map_err(no_plan)?;
        Ok(DistributedPlan { plan, session, failure })
    }

    /// The session that plans and executes a statement.
    fn session(
        &self,
        session: &SessionState,
        description: &QueryDescription,
        lost: &[Url],
        failure: FirstFailure,
    ) -> Result<SessionState> {
        let mut workers = self.workers.get_urls()?;
        workers.retain(|worker| !lost.contains(worker));
        workers.sort_unstable();
        workers.dedup();
        if workers.is_empty() {
            return Err(NotDistributed::NoWorkers.into_error());
        }
        let header = SessionHeader::of(session.config(), description.clone()).to_headers()?;
        let memory = CoscanOptions::of(session.config());
        let memory = memory.map_or(0, |coscan| coscan.manager().options().memory_bytes);
        let connections = workers.len().saturating_mul(self.options.queries_max) as u64;
        let buffer_bytes = memory / BUFFERS_PART / connections.max(1);
        let buffer_bytes = buffer_bytes.clamp(BUFFER_BYTES.0, BUFFER_BYTES.1);
        let buffer_bytes = usize::try_from(buffer_bytes).unwrap_or(usize::MAX);
        let workers = Arc::new(Workers(workers));
        let mut state = for_workers(session.clone());
        state.config_mut().set_extension(Arc::clone(&workers));
        state.config_mut().set_extension(Arc::new(self.options.clone()));
        let planner = SendablePlans { planner: Arc::clone(state.query_planner()) };
        let id = session.session_id().to_owned();
        let creates_defaults = state.config().options().catalog.create_default_catalog_and_schema;
        let mut state = SessionStateBuilder::new_from_existing(state)
            .with_session_id(id)
            .with_query_planner(Arc::new(planner))
            .with_distributed_planner()
            .with_distributed_worker_resolver(workers as Arc<dyn WorkerResolver>)
            .with_distributed_channel_resolver(WatchedChannels {
                channels: Arc::clone(&self.channels),
                failure,
            })
            .with_distributed_user_codec(TaskScanCodec)
            .with_distributed_desired_task_count_handler(desired_tasks)
            .with_distributed_scale_up_leaf_node_handler(divide)
            .with_distributed_route_tasks_handler(route_to_owners)
            .with_distributed_passthrough_headers(header)?
            .with_distributed_worker_connection_buffer_budget_bytes(buffer_bytes)?
            // All tasks of a union execute all its inputs, so that task i is on worker i in every scan.
            .with_distributed_children_isolator_unions(false)?
            .build();
        state.config_mut().options_mut().catalog.create_default_catalog_and_schema =
            creates_defaults;
        Ok(state)
    }
}

/// Plans statements with the planner of the session, and refuses plans that cannot be sent.
#[derive(Debug)]
struct SendablePlans {
    planner: Arc<dyn QueryPlanner + Send + Sync>,
}

#[async_trait]
impl QueryPlanner for SendablePlans {
    async fn create_physical_plan(
        &self,
        statement: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.planner.create_physical_plan(statement, session).await?;
        // EXPLAIN ANALYZE itself stays here. Its input is sent.
        let analyzed = plan.downcast_ref::<AnalyzeExec>().map(AnalyzeExec::input);
        let options = options_of(session.config());
        let known =
            KnownFunctions { known: options.functions.as_deref(), session: session.config() };
        check_sendable(analyzed.unwrap_or(&plan), &known).map_err(NotDistributed::into_error)?;
        Ok(plan)
    }
}

/// The error of planning a statement for workers. The server then plans it for itself: if that fails as well, its error is that of
/// the statement.
fn no_plan(error: DataFusionError) -> DataFusionError {
    match NotDistributed::of(&error) {
        Some(_) => error,
        None => NotDistributed::NoPlan(error.strip_backtrace()).into_error(),
    }
}
