//! The numbers of the rows of a managed table, by which a statement names those that it changes.

use std::sync::Arc;

use datafusion::common::{Column, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use crate::managed::table::ManagedTable;

/// A scan of the table with the numbers of its rows as the last column.
pub(crate) fn scan_with_row_numbers(
    name: TableReference,
    table: &ManagedTable,
) -> Result<LogicalPlan> {
    let source = provider_as_source(Arc::new(table.with_row_numbers()));
    LogicalPlanBuilder::scan(name, source, None)?.build()
}

/// The last column of a plan.
pub(crate) fn number_of(rows: &LogicalPlan) -> Expr {
    let columns = rows.schema().columns();
    Expr::Column(columns.last().cloned().unwrap_or_else(|| Column::from_name("row number")))
}
