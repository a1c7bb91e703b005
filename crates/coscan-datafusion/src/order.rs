//! The order that a table declares, as far as its files keep it.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSource;
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::SortExpr;
use datafusion::physical_expr::{LexOrdering, create_lex_ordering};

/// The declared orders that hold over all files one after another.
///
/// A declaration is about each file. Whether the files continue each other is judged by the plain engine, from their
/// statistics.
pub(crate) fn of_files(
    schema: &SchemaRef,
    files: &FileGroup,
    declared: &[Vec<SortExpr>],
) -> Result<Vec<LexOrdering>> {
    if declared.is_empty() {
        return Ok(Vec::new());
    }
    let orderings = create_lex_ordering(schema, declared, &ExecutionProps::new())?;
    let source = Arc::new(ParquetSource::new(Arc::clone(schema)));
    let mut kept = Vec::new();
    for ordering in orderings {
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source.clone())
            .with_file_groups(vec![files.clone()])
            .with_output_ordering(vec![ordering.clone()])
            .build();
        if config.eq_properties().output_ordering().is_some() {
            kept.push(ordering);
        }
    }
    Ok(kept)
}
