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
pub(crate) struct PinnedTable {
    source: Arc<ScanSource>,
    /// Replicas with the same rows.
    replicas: Vec<Arc<ScanSource>>,
}

impl PinnedTable {
    pub(crate) fn new(source: Arc<ScanSource>, replicas: Vec<Arc<ScanSource>>) -> Self {
        Self { source, replicas }
    }
}

#[async_trait]
impl TableProvider for PinnedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.source.table.table().schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.source.statistics.as_ref().clone())
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
        let projection = projection.map(Vec::as_slice);
        let pushdown = Pushdown::of(session, &self.schema(), projection, filters, limit)?;
        plan::plan(session, &self.source, &self.replicas, pushdown).await
    }
}
