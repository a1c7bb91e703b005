//! The state of DataFusion in which statements are planned and run.

use std::sync::Arc;

use coscan_datafusion::SharedMemoryPool;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};

use crate::engine::memory::QueryMemory;
use crate::engine::{Engine, Session, functions};
use crate::queries::QueryId;

impl Engine {
    /// The state of DataFusion for one statement of a session; with a limit on memory if it runs.
    pub(super) fn state(&self, session: &Session, query: Option<QueryId>) -> SessionState {
        let mut config = self.base.config().clone();
        let settings = session.settings();
        settings.apply_to(&mut config, &session.user);
        let mut builder = SessionStateBuilder::new_from_existing(self.base.clone())
            .with_catalog_list(self.catalogs(session))
            .with_config(config);
        if let Some(id) = query {
            let mut runtime = self.base.runtime_env().as_ref().clone();
            let manager = self.manager();
            let limit = self.limits.query_memory_max.unwrap_or(manager.options().memory_bytes / 2);
            let limit = settings.memory_limit().map_or(limit, |own| own.min(limit));
            let server = SharedMemoryPool::of_manager(manager);
            runtime.memory_pool = Arc::new(QueryMemory::new(server, limit));
            builder = builder.with_session_id(id.to_string()).with_runtime_env(Arc::new(runtime));
        }
        let mut state = builder.build();
        for function in functions::of_session(session, &self.queries) {
            if let Err(error) = state.register_udf(Arc::new(function)) {
                log::error!("cannot register a function: {error}");
            }
        }
        state
    }
}
