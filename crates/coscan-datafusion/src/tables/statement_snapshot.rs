//! A table at one moment, for one statement.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use crate::planning::plan::{self, Pushdown};
use crate::tables::source::ScanSource;

/// One snapshot of a table. All scans of a statement read the same one, however often it names the table.
#[derive(Clone, Debug)]
pub(crate) struct StatementSnapshot {
    source: Arc<ScanSource>,
    /// Replicas with the same rows.
    replicas: Vec<Arc<ScanSource>>,
    /// Whether the column of row numbers is one of its columns.
    has_row_numbers: bool,
}

impl StatementSnapshot {
    pub(crate) fn new(source: Arc<ScanSource>, replicas: Vec<Arc<ScanSource>>) -> Self {
        Self { source, replicas, has_row_numbers: false }
    }

    /// The same table with the column of row numbers.
    pub(crate) fn with_row_numbers(self) -> Self {
        Self { has_row_numbers: true, ..self }
    }
}

#[async_trait]
impl TableProvider for StatementSnapshot {
    fn schema(&self) -> SchemaRef {
        match self.has_row_numbers {
            true => Arc::clone(self.source.table.table().schema()),
            false => self.source.schema(),
        }
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut statistics = self.source.statistics.as_ref().clone();
        statistics.column_statistics.truncate(self.schema().fields().len());
        Some(statistics)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.schema();
        let all: Vec<_> = (0..schema.fields().len()).collect();
        let projection = Some(projection.map_or(&*all, Vec::as_slice));
        let pushdown = Pushdown::of(session, &schema, projection, filters, limit)?;
        plan::plan(session, &self.source, &self.replicas, pushdown).await
    }
}
