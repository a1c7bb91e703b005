//! The state of DataFusion in which statements are planned and run.

use std::collections::HashMap;
use std::sync::Arc;

use coscan_datafusion::SharedMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{FunctionRegistry, TaskContext};

use crate::engine::memory::QueryMemory;
use crate::engine::{Engine, Session, functions};
use crate::queries::QueryId;

impl Engine {
    /// The state for one statement of a session, which begins now.
    pub(super) fn state(&self, session: &Session) -> SessionState {
        // A builder would register hundreds of functions one by one, which takes longer than a short query.
        let mut state = self.base.clone();
        session.settings().apply_to(state.config_mut(), &session.user);
        state.register_catalog_list(self.catalogs(session));
        for function in functions::of_session(session, &self.queries) {
            if let Err(error) = state.register_udf(Arc::new(function)) {
                log::error!("cannot register a function: {error}");
            }
        }
        state.mark_start_execution(); // The time that `now()` returns.
        state
    }

    /// What a query runs with, beside the configuration of its state: a limit on memory, and its number. Plans hold their
    /// functions, so none can be looked up.
    pub(super) fn query_environment(&self, session: &Session, id: QueryId) -> QueryEnvironment {
        let mut runtime = self.base.runtime_env().as_ref().clone();
        let manager = self.manager();
        let limit = self.limits.query_memory_max.unwrap_or(manager.options().memory_bytes / 2);
        let limit = session.settings().memory_limit().map_or(limit, |own| own.min(limit));
        let server = SharedMemoryPool::of_manager(manager);
        runtime.memory_pool = Arc::new(QueryMemory::new(server, limit));
        QueryEnvironment { id, runtime: Arc::new(runtime) }
    }
}

/// What a query runs with.
pub(super) struct QueryEnvironment {
    id: QueryId,
    pub(super) runtime: Arc<RuntimeEnv>,
}

impl QueryEnvironment {
    /// For plans of this state.
    pub(super) fn task_context(self, state: &SessionState) -> TaskContext {
        let (id, config) = (self.id.to_string(), state.config().clone());
        let (scalar, higher_order) = (HashMap::new(), HashMap::new());
        let (aggregate, window) = (HashMap::new(), HashMap::new());
        TaskContext::new(None, id, config, scalar, higher_order, aggregate, window, self.runtime)
    }
}
