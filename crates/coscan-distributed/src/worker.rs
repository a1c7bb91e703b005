//! Workers, which execute tasks.

use std::future::ready;
use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, QueryId};
use coscan_storage::stores::Prefixes;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion_distributed::{
    ChannelResolver, DistributedExt, Worker, WorkerPlanRewriteEvent,
    WorkerPlanRewriteEventResponse, WorkerQueryContext,
};

use crate::codec::TaskScanCodec;
use crate::query_pools::{MakeMemoryPool, QueryPools};
use crate::sendable::check_received;
use crate::session_header::{SessionHeader, version};
use crate::task_errors::with_clear_errors;
use crate::task_key::task_key;

/// Registers the functions that the sessions of coordinators have besides the engine's.
pub type RegisterFunctions = Arc<dyn Fn(&mut SessionState) -> Result<()> + Send + Sync>;

/// What a worker executes tasks with.
#[derive(Clone)]
pub struct WorkerOptions {
    /// The manager that the tasks of all queries share, and its stores.
    pub coscan: CoscanOptions,
    /// The connections to the other workers.
    pub channels: Arc<dyn ChannelResolver + Send + Sync>,
    /// Registers the functions that the sessions of coordinators have besides the engine's.
    pub register_functions: RegisterFunctions,
    /// What operators share, such as the files for rows that do not fit into memory. Its memory pool is not used.
    pub runtime: Arc<RuntimeEnv>,
    /// Makes the memory pool for the operators of a query.
    pub make_memory_pool: MakeMemoryPool,
    /// The prefixes of the files that tasks may read.
    pub stores: Prefixes,
}

/// A worker. Its tasks share one manager and one memory budget, whatever coordinators and queries they are of.
#[must_use]
pub fn worker(options: WorkerOptions) -> Worker {
    let pools = Arc::new(QueryPools::new(Arc::clone(&options.make_memory_pool)));
    let build = move |WorkerQueryContext { builder, headers }| {
        let header = SessionHeader::from_headers(&headers);
        let session = header.and_then(|header| {
            let execution = task_key(&headers).map(|key| key.query_id);
            let memory_pool = pools.of(&header.description, execution);
            let runtime = RuntimeEnv { memory_pool, ..options.runtime.as_ref().clone() };
            session(&options, &header, builder.with_runtime_env(Arc::new(runtime)))
        });
        ready(session)
    };
    Worker::from_session_builder(build).with_version(version())
}

/// The session of a task.
fn session(
    options: &WorkerOptions,
    header: &SessionHeader,
    builder: SessionStateBuilder,
) -> Result<SessionState> {
    let mut state = builder
        .with_distributed_channel_resolver(Arc::clone(&options.channels))
        .with_distributed_user_codec(TaskScanCodec)
        .with_distributed_worker_plan_rewrite_handler(checked)
        .build();
    let config = state.config_mut();
    options.coscan.clone().add_to(config);
    header.apply_to(config)?;
    if let Some(id) = &header.description.id {
        config.set_extension(Arc::new(QueryId::new(id.clone())));
    }
    config.set_extension(Arc::new(options.stores.clone()));
    (options.register_functions)(&mut state)?;
    configure_functions(&mut state)?;
    Ok(state)
}

/// Gives functions the settings of the session that they depend on, such as its time zone.
fn configure_functions(state: &mut SessionState) -> Result<()> {
    let options = Arc::clone(state.config().options());
    let functions = state.scalar_functions().values();
    let configured: Vec<_> =
        functions.filter_map(|function| function.inner().with_updated_config(&options)).collect();
    for function in configured {
        state.register_udf(Arc::new(function))?;
    }
    Ok(())
}

/// Refuses plans with operators that workers do not execute. Errors of the others are made clear.
fn checked(event: WorkerPlanRewriteEvent<'_>) -> Result<WorkerPlanRewriteEventResponse> {
    check_received(&event.plan)?;
    Ok(WorkerPlanRewriteEventResponse::new(with_clear_errors(event.plan)?))
}
