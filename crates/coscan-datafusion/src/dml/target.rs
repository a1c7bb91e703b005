//! The target of a rewritten statement: a table that takes the rows of its input as changes.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;

use crate::dml::operation::Operation;
use crate::dml::sink::plan_change;
use crate::managed::snapshot::ManagedSnapshot;
use crate::managed::table::ManagedTable;

/// A table that takes the rows of its input as changes.
#[derive(Clone, Debug)]
pub(crate) struct ChangeTarget {
    pub(crate) table: ManagedTable,
    operation: Operation,
    /// The snapshot that the statement reads, and the statement, once it is planned.
    planned: Option<(ManagedSnapshot, Arc<LogicalPlan>)>,
}

impl ChangeTarget {
    pub(crate) fn new(table: ManagedTable, operation: Operation) -> Self {
        Self { table, operation, planned: None }
    }

    /// The same target for a statement that reads a snapshot.
    pub(crate) fn planned(&self, snapshot: ManagedSnapshot, statement: Arc<LogicalPlan>) -> Self {
        Self { planned: Some((snapshot, statement)), ..self.clone() }
    }
}

#[async_trait]
impl TableProvider for ChangeTarget {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.table.columns())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        internal_err!("the target of a change is not read")
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some((snapshot, statement)) = self.planned.clone() else {
            return internal_err!(
                "the session plans changes without coscan's planner; install coscan after other planners"
            );
        };
        let operation = self.operation.clone();
        plan_change(session, &self.table, snapshot, operation, input, statement)
    }
}
