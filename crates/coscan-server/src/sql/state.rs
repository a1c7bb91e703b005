//! The state of DataFusion in which statements are planned and run.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{FunctionRegistry, TaskContext};
use datafusion::logical_expr::LogicalPlan;

use crate::queries::QueryId;
use crate::sql::information_schema::INFORMATION_SCHEMA;
use crate::sql::memory::{QueryLimits, collects_values};
use crate::sql::{CATALOG, SCHEMA, Session, SqlService, functions};

impl SqlService {
    /// The state for one statement of a session that starts now.
    pub(super) fn state(&self, session: &Session) -> SessionState {
        // A builder would register hundreds of functions one by one, which takes longer than a
        // short query.
        let mut state = self.base.clone();
        session.settings().apply_to(state.config_mut(), &session.user);
        session.transaction().attach_to(state.config_mut());
        if let Some(database) = self.database() {
            database.set_default(state.config_mut(), CATALOG, SCHEMA);
        }
        state.register_catalog_list(self.catalogs(session));
        let options = Arc::clone(state.config().options());
        let of_settings = self.of_settings.iter();
        let of_settings =
            of_settings.filter_map(|function| function.inner().with_updated_config(&options));
        for function in functions::of_session(session, &self.queries).into_iter().chain(of_settings)
        {
            if let Err(error) = state.register_udf(Arc::new(function)) {
                log::error!("cannot register a function: {error}");
            }
        }
        state.mark_start_execution(); // The time that `now()` returns.
        state
    }

    /// The environment of a query: its id, and a runtime with its limit on memory.
    pub(super) fn query_environment(
        &self,
        session: &Session,
        id: QueryId,
        plan: Option<&LogicalPlan>,
    ) -> QueryEnvironment {
        let mut runtime = self.base.runtime_env().as_ref().clone();
        let request = QueryLimits {
            user: session.user.name.clone(),
            bytes_max: session.settings().memory_limit(),
            collects_values: plan.is_some_and(collects_values),
        };
        runtime.memory_pool = self.memory_limits.pool_for(&request);
        QueryEnvironment {
            id,
            runtime: Arc::new(runtime),
            #[cfg(feature = "distributed")]
            memory: request,
        }
    }
}

/// The environment of a query apart from its state.
pub(super) struct QueryEnvironment {
    pub(super) id: QueryId,
    pub(super) runtime: Arc<RuntimeEnv>,
    /// The memory that it asks for, here and on workers.
    #[cfg(feature = "distributed")]
    pub(super) memory: QueryLimits,
}

impl QueryEnvironment {
    /// The context for a plan of this state. Plans hold the functions that they call. Only the tables that list all
    /// functions look for them here, and copying them takes as long as a short query.
    pub(super) fn task_context(&self, state: &SessionState, lists_functions: bool) -> TaskContext {
        let (id, config) = (self.id.to_string(), state.config().clone());
        let (mut scalar, mut higher) = (HashMap::new(), HashMap::new());
        let (mut aggregate, mut window) = (HashMap::new(), HashMap::new());
        if lists_functions {
            scalar.clone_from(state.scalar_functions());
            higher.clone_from(state.higher_order_functions());
            aggregate.clone_from(state.aggregate_functions());
            window.clone_from(state.window_functions());
        }
        TaskContext::new(
            None,
            id,
            config,
            scalar,
            higher,
            aggregate,
            window,
            Arc::clone(&self.runtime),
        )
    }
}

/// Whether a plan reads a table that lists functions.
pub(super) fn lists_functions(plan: &LogicalPlan) -> Result<bool> {
    let mut lists = false;
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            lists |= scan.table_name.schema() == Some(INFORMATION_SCHEMA);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(lists)
}
