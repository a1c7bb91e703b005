//! Plans statements for several workers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coscan_datafusion::{CoscanOptions, SharedScanExec, for_workers};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, ScalarUDF};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    ChannelResolver, DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExec,
    DistributedExt, DistributedLeafExec, RouteTasksEvent, RouteTasksEventResponse,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse, SessionStateBuilderExt, WorkerResolver,
};
use tokio::sync::Semaphore;
use url::Url;

use crate::codec::TaskScanCodec;
use crate::failure::{FirstFailure, WatchedChannels};
use crate::not_distributed::NotDistributed;
use crate::ownership::owners;
use crate::sendable::{KnownFunctions, check_sendable};
use crate::session_header::SessionHeader;
use crate::task_scan::TaskScan;

/// The least and the most bytes that wait on a connection between two workers. The engine takes them whether or not there is
/// memory.
const BUFFER_BYTES: (u64, u64) = (1 << 20, 16 << 20);

/// How statements are divided.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Scans of at least this many stored bytes are divided among all workers. Smaller ones are executed by one. The
    /// default is 64 MB.
    pub divided_bytes_min: u64,
    /// The number of distributed queries that each worker executes at the same time. The default is 16.
    pub queries_max: usize,
    /// The time that a query waits for workers that have too many. The default is a minute.
    pub busy_max: Duration,
    /// The functions that workers know by their names, if not those of the engine. Queries that call others are not
    /// distributed.
    pub functions: Option<Arc<HashMap<String, Arc<ScalarUDF>>>>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            divided_bytes_min: 64_000_000,
            queries_max: 16,
            busy_max: Duration::from_secs(60),
            functions: None,
        }
    }
}

/// The workers of a cluster that can be given tasks.
#[async_trait]
pub trait WorkerList: WorkerResolver {
    /// Finds out which workers are there.
    async fn refresh(&self);
}

/// The workers that statements are divided among.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) workers: Arc<dyn WorkerList>,
    pub(crate) options: ClusterOptions,
    /// Places for queries of this coordinator, so that they do not compete for those of the workers.
    pub(crate) places: Arc<Semaphore>,
    channels: Arc<dyn ChannelResolver + Send + Sync>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A plan that workers execute.
#[derive(Clone, Debug)]
pub struct DistributedPlan {
    /// The plan of one partition, whose stages are sent when it is executed.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The session to execute it in.
    pub session: SessionState,
    /// The workers that may get tasks of it.
    pub workers: Vec<Url>,
    /// The first failure of a connection to one of them.
    pub(crate) failure: FirstFailure,
}

/// The workers of one statement. They stay the same while it is planned and executed.
#[derive(Debug)]
struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

impl Cluster {
    /// The workers that a resolver names when a statement is planned, with connections to them.
    #[must_use]
    pub fn new(
        options: ClusterOptions,
        workers: Arc<dyn WorkerList>,
        channels: Arc<dyn ChannelResolver + Send + Sync>,
    ) -> Self {
        let places = Arc::new(Semaphore::new(options.queries_max));
        Self { options, workers, places, channels }
    }

    /// Plans a statement of a session with coscan, which is not optimized yet.
    ///
    /// # Errors
    /// [`NotDistributed`] if its server should execute it alone; otherwise as the planner of the session.
    pub async fn plan(
        &self,
        session: &SessionState,
        statement: &LogicalPlan,
        query: Option<String>,
    ) -> Result<DistributedPlan> {
        self.plan_without(session, statement, query, &[]).await
    }

    /// Plans a statement for those workers that are not known to be lost.
    pub(crate) async fn plan_without(
        &self,
        session: &SessionState,
        statement: &LogicalPlan,
        query: Option<String>,
        lost: &[Url],
    ) -> Result<DistributedPlan> {
        let failure = FirstFailure::default();
        let session = self.session(session, query, lost, failure.clone())?;
        let plan = session.create_physical_plan(statement).await?;
        if !plan.exists(|plan| Ok(plan.is::<DistributedExec>()))? {
            return Err(external(NotDistributed::OneTask));
        }
        let workers = workers_of(session.config()).0.clone();
        Ok(DistributedPlan { plan, session, workers, failure })
    }

    /// The session that plans and executes a statement.
    fn session(
        &self,
        session: &SessionState,
        query: Option<String>,
        lost: &[Url],
        failure: FirstFailure,
    ) -> Result<SessionState> {
        let mut workers = self.workers.get_urls()?;
        workers.retain(|worker| !lost.contains(worker));
        workers.sort_unstable();
        workers.dedup();
        if workers.is_empty() {
            return Err(external(NotDistributed::NoWorkers));
        }
        let header = SessionHeader::of(session.config(), query).to_headers()?;
        let memory = CoscanOptions::of(session.config());
        let memory = memory.map_or(0, |coscan| coscan.manager().options().memory_bytes);
        let connections = 16 * workers.len().saturating_mul(self.options.queries_max) as u64;
        let buffer_bytes = (memory / connections.max(1)).clamp(BUFFER_BYTES.0, BUFFER_BYTES.1);
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
        check_sendable(analyzed.unwrap_or(&plan), &known).map_err(external)?;
        Ok(plan)
    }
}

/// The number of tasks that a scan should have.
fn desired_tasks(
    event: DesiredTaskCountEvent<'_>,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    let scan = event.plan.downcast_ref::<SharedScanExec>()?;
    // Operators above may need all rows of a scan of one partition in one place.
    if event.plan.output_partitioning().partition_count() == 1 {
        return Some(Ok(DesiredTaskCountEventResponse::maximum(1)));
    }
    let workers = workers_of(event.session_config).0.len();
    let options = options_of(event.session_config);
    let bytes = scan.chunks_to_divide().map(|chunks| chunks.iter().map(|chunk| chunk.bytes).sum());
    let tasks = match bytes {
        Ok(bytes) if options.divided_bytes_min <= bytes => workers,
        _ => 1,
    };
    Some(Ok(DesiredTaskCountEventResponse::desired(tasks)))
}

/// Divides a scan into tasks, each with the row groups that its worker owns.
fn divide(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = event.plan.downcast_ref::<SharedScanExec>()?;
    let workers = &workers_of(event.session_config).0;
    let partitions_max = event.session_config.target_partitions();
    let divided = divided(event.plan, scan, workers, event.task_count, partitions_max);
    Some(divided.map(ScaleUpLeafNodeEventResponse::new))
}

fn divided(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &SharedScanExec,
    workers: &[Url],
    task_count: usize,
    partitions_max: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let chunks = scan.chunks_to_divide();
    let chunks = chunks.map_err(|reason| external(NotDistributed::Scan(reason)))?;
    // A stage of fewer tasks is on the owner of the first chunk and the workers after it, by address.
    let all = owners(&chunks, workers);
    let (owners, places) = match task_count == workers.len() {
        true => (all, (0..workers.len()).collect()),
        false => {
            let first = all.first().copied().unwrap_or_default();
            let places: Vec<_> =
                (0..task_count).map(|task| (first + task) % workers.len()).collect();
            let nearby: Vec<_> = places.iter().map(|&place| workers[place].clone()).collect();
            (crate::ownership::owners(&chunks, &nearby), places)
        }
    };
    let mut counts = vec![0; task_count];
    owners.iter().for_each(|&owner| counts[owner] += 1);
    let partitions = counts.into_iter().max().unwrap_or_default().min(partitions_max).max(1);
    let tasks = scan.divide(&owners, task_count, partitions)?;
    let variants = tasks.into_iter().zip(places).map(|(task, place): (_, usize)| {
        Ok(Arc::new(TaskScan::new(task, workers[place].clone())?) as Arc<dyn ExecutionPlan>)
    });
    let variants = variants.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(DistributedLeafExec::try_new(Arc::clone(plan), variants)?))
}

/// Sends each task to the owner of the row groups of the stage's first scan. Stages without scans are left to the engine.
fn route_to_owners(event: RouteTasksEvent<'_>) -> Option<Result<RouteTasksEventResponse>> {
    let mut owners = None;
    let visited = event.plan.apply(|plan| {
        let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let owner =
            |task: &Arc<dyn ExecutionPlan>| Some(task.downcast_ref::<TaskScan>()?.owner().clone());
        owners = leaf.variants().iter().map(owner).collect::<Option<Vec<_>>>();
        Ok(TreeNodeRecursion::Stop)
    });
    if let Err(error) = visited {
        return Some(Err(error));
    }
    let owners = owners.filter(|owners| owners.len() == event.task_count)?;
    Some(Ok(RouteTasksEventResponse::new(owners)))
}

/// The workers of the statement that a session plans.
fn workers_of(config: &SessionConfig) -> Arc<Workers> {
    config.get_extension::<Workers>().expect("the session of a statement has its workers")
}

/// How the statement that a session plans is divided.
fn options_of(config: &SessionConfig) -> Arc<ClusterOptions> {
    config.get_extension::<ClusterOptions>().unwrap_or_default()
}

fn external(reason: NotDistributed) -> DataFusionError {
    DataFusionError::External(Box::new(reason))
}
