//! Stands for a common subplan in the logical plan.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::not_impl_err;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableScanBuilder, TableType};
use datafusion::physical_plan::execution_plan::reset_plan_states;

use super::operator::CommonSubplan;
use crate::operator::{OperatorExec, Plan};

/// A scan that is planned as the operator of the subplan with this number. Its columns have the names of the subplan's.
pub(super) fn scan(number: usize, subplan: Arc<LogicalPlan>, input: Plan) -> Result<LogicalPlan> {
    let schema = Arc::clone(subplan.schema());
    let table = SubplanTable { subplan, input };
    let name = format!("common_subplan_{number}");
    let scan = TableScanBuilder::new(name, provider_as_source(Arc::new(table)));
    Ok(LogicalPlan::TableScan(TableScan { projected_schema: schema, ..scan.build()? }))
}

#[derive(Debug)]
struct SubplanTable {
    subplan: Arc<LogicalPlan>,
    input: Plan,
}

#[async_trait]
impl TableProvider for SubplanTable {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Plan> {
        if projection.is_some() {
            return not_impl_err!("a common subplan has all of its columns");
        }
        let operator = CommonSubplan::new(Arc::clone(&self.subplan));
        // Copies have nothing of an execution in common, since each may be executed.
        let copy = reset_plan_states(Arc::clone(&self.input))?;
        Ok(Arc::new(OperatorExec::above(operator, vec![copy])?))
    }
}
