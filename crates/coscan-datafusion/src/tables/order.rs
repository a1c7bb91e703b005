//! The orders that a table declares (`WITH ORDER`), as far as its files keep them.

use std::sync::Arc;

use coscan_storage::table::ParquetTable;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::plan_err;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSource;
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::SortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, create_lex_ordering};

use crate::planning::nan::may_be_nan;

/// The declared orders that hold over all files, one after another.
///
/// A declaration applies to each file. Plain DataFusion decides by the bounds of values whether files continue each
/// other, which is right only for keys that are never null or NaN.
///
/// # Errors
/// If a declaration names a column that the table does not have.
pub(crate) fn of_files(
    table: &ParquetTable,
    files: &FileGroup,
    declared: &[Vec<SortExpr>],
) -> Result<Vec<LexOrdering>> {
    if declared.is_empty() {
        return Ok(Vec::new());
    }
    let schema = table.schema();
    check_columns(schema, declared)?;
    let orderings = create_lex_ordering(schema, declared, &ExecutionProps::new())?;
    let source = Arc::new(ParquetSource::new(Arc::clone(schema)));
    let mut kept = Vec::new();
    for ordering in orderings {
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source.clone())
            .with_file_groups(vec![files.clone()])
            .with_output_ordering(vec![ordering.clone()])
            .build();
        let is_bounded = files.len() <= 1
            || ordering.iter().all(|key| {
                let column = key.expr.downcast_ref::<Column>();
                column.is_some_and(|column| has_bounds_of_all(table, column.index()))
            });
        if is_bounded && config.eq_properties().output_ordering().is_some() {
            kept.push(ordering);
        }
    }
    Ok(kept)
}

/// Checks that all columns exist. Plain DataFusion ends an order at the first column that does not exist.
fn check_columns(schema: &Schema, declared: &[Vec<SortExpr>]) -> Result<()> {
    for key in declared.iter().flatten() {
        let columns = key.expr.column_refs();
        let unknown = columns.iter().find(|column| schema.index_of(column.name()).is_err());
        if let Some(column) = unknown {
            let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            return plan_err!(
                "the order of the table names column {}, but it has {}",
                column.name(),
                names.join(", ")
            );
        }
    }
    Ok(())
}

/// Whether the bounds of a column hold for all its values, since none is null or NaN.
fn has_bounds_of_all(table: &ParquetTable, column: usize) -> bool {
    if may_be_nan(table.schema().field(column).data_type()) {
        return false;
    }
    let nulls = table.statistics(column).map(|statistics| statistics.null_count.clone());
    nulls.is_ok_and(|nulls| nulls.iter().all(|count| count == Some(0)))
}
