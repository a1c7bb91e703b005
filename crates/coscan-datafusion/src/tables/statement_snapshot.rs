//! The snapshot of a table that a statement sees, and the replicas that it may read instead.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use crate::planning::plan::{self, Pushdown};
use crate::settings::SessionSettings;
use crate::tables::provider::SharedTableProvider;
use crate::tables::replica;
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

impl SharedTableProvider {
    /// The snapshot that a statement of a session sees: the newest one, if the session's `refresh_interval` has passed.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again, or a local file was replaced.
    pub(crate) async fn statement_snapshot(
        &self,
        session: &dyn Session,
    ) -> Result<StatementSnapshot> {
        // Without a cache of lists the engine lists the files of its tables for each query.
        let has_lists = session.runtime_env().cache_manager.get_list_files_cache().is_some();
        let interval = SessionSettings::of(session.config()).refresh_interval;
        let planned = match self.snapshots.may_change_columns() {
            true => Some(self.snapshots.current().await?),
            false => None,
        };
        if let Some(interval) = interval.or_else(|| (!has_lists).then_some(Duration::ZERO)) {
            for copy in self.refreshed_copies() {
                copy.refresh_after(interval).await;
            }
        }
        let newest = self.snapshots.current().await?;
        // The statement was planned with the columns of the snapshot before.
        let schema = |source: &ScanSource| Arc::clone(source.table.table().schema());
        let source = planned.filter(|planned| schema(planned) != schema(&newest)).unwrap_or(newest);
        self.snapshots.check(&source).await?;
        let replicas = self.replicas_of(&source).await;
        Ok(StatementSnapshot::new(source, replicas))
    }

    /// The replicas that a query may read instead of a snapshot of the table: those with the same number of rows.
    async fn replicas_of(&self, table: &ScanSource) -> Vec<Arc<ScanSource>> {
        let mut replicas = Vec::with_capacity(self.replicas.len());
        for replica in &self.replicas {
            let current = replica.current().await;
            match current.and_then(|current| replica::check_rows(table, &current).map(|()| current))
            {
                Ok(current) => replicas.push(current),
                Err(error) => {
                    log::warn!("a scan does without a replica of {}: {error}", table.name)
                }
            }
        }
        replicas
    }
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
