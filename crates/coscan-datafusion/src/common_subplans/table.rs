//! Stands for a common subplan in the logical plan.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableType};

use super::operator::CommonSubplan;
use crate::operator::{OperatorExec, Plan};

/// A scan that is planned as a consumer of the subplan with this number. Its columns have the names of the subplan's.
/// `prepared` is the subplan as it is planned.
pub(super) fn scan(
    number: usize,
    subplan: &LogicalPlan,
    prepared: LogicalPlan,
    planner: &Arc<dyn QueryPlanner + Send + Sync>,
) -> LogicalPlan {
    let (subplan_schema, planner) = (Arc::clone(subplan.schema()), Arc::clone(planner));
    let table = SubplanTable { number, subplan: Arc::new(prepared), planner };
    LogicalPlan::TableScan(TableScan {
        table_name: format!("common_subplan_{number}").into(),
        source: provider_as_source(Arc::new(table)),
        projection: None,
        projected_schema: subplan_schema,
        filters: Vec::new(),
        fetch: None,
        statistics_requests: Default::default(),
    })
}

struct SubplanTable {
    number: usize,
    subplan: Arc<LogicalPlan>,
    planner: Arc<dyn QueryPlanner + Send + Sync>,
}

impl fmt::Debug for SubplanTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubplanTable").field("number", &self.number).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for SubplanTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.subplan.schema().inner())
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    /// Plans a copy of the subplan. Copies share no state, since each may be executed.
    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Plan> {
        let Some(session) = without_optimizer(session).filter(|_| projection.is_none()) else {
            return internal_err!(
                "a common subplan has all of its columns, in a session of the engine"
            );
        };
        let copy = self.planner.create_physical_plan(&self.subplan, &session).await?;
        let operator = CommonSubplan::new(self.number, Arc::clone(&self.subplan));
        Ok(Arc::new(OperatorExec::above(operator, vec![copy])?))
    }
}

/// A session that plans subplans without the rules of the physical optimizer, which run once for the whole statement.
/// `None` if the session is not the engine's [`SessionState`].
fn without_optimizer(session: &dyn Session) -> Option<SessionState> {
    let mut state = session.as_any().downcast_ref::<SessionState>()?.clone();
    // The builder would make the default catalog.
    state.config_mut().options_mut().catalog.create_default_catalog_and_schema = false;
    let id = state.session_id().to_owned();
    let builder = SessionStateBuilder::new_from_existing(state).with_session_id(id);
    Some(builder.with_physical_optimizer_rules(Vec::new()).build())
}
