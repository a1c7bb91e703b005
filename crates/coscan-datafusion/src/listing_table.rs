//! The engine's own tables of Parquet files, shared.
//!
//! The engine plans the scan: it lists the files, leaves out partitions, and stops at a limit. Of that plan a shared one is
//! made over the same files, or else it stays: what the engine can read never fails here.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::Constraints;
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use log::debug;

use crate::coscan::Coscan;
use crate::error::from_store;
use crate::file_list::FileList;
use crate::location::store_of;
use crate::planning::{self, PlanRequest, physical_filters};
use crate::source::{ScanSource, short_name};

/// A table of the engine for one query, whose scans are shared where they can be.
#[derive(Debug)]
pub(crate) struct SharedListingTable {
    /// A [`ListingTable`].
    table: Arc<dyn TableProvider>,
    /// For EXPLAIN.
    name: String,
    /// Whether the query sorts the rows of the scan.
    is_sorted_above: bool,
    coscan: Arc<Coscan>,
}

impl SharedListingTable {
    /// A table that a query calls by this name, if it is one of the engine's own of Parquet files.
    pub(crate) fn of(
        table: Arc<dyn TableProvider>,
        name: &str,
        coscan: &Arc<Coscan>,
    ) -> Option<Self> {
        let listing = table.downcast_ref::<ListingTable>()?;
        listing.options().format.downcast_ref::<ParquetFormat>()?;
        let (name, coscan) = (short_name(name), Arc::clone(coscan));
        Some(Self { table, name, is_sorted_above: false, coscan })
    }

    /// The same in a query that sorts the rows of the scan, or not.
    pub(crate) fn sorted_above(self, is_sorted_above: bool) -> Self {
        Self { is_sorted_above, ..self }
    }

    /// A shared scan of the files that a plan of the engine reads, `None` if they cannot be shared.
    async fn share(
        &self,
        session: &dyn Session,
        plan: &Arc<dyn ExecutionPlan>,
        arguments: &ScanArgs<'_>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let table = self.table.downcast_ref::<ListingTable>();
        let list = table.and_then(|table| FileList::of(table, plan, self.coscan.table_options()));
        // Files that say themselves in which order they are need no sort if the engine reads them.
        let list = list.filter(|list| !(self.is_sorted_above && list.has_undeclared_order));
        let Some(list) = list else { return Ok(None) };
        let url = list.table.table_paths()[0].get_url();
        let store = store_of(session.runtime_env(), self.coscan.stores(), url);
        let store = store.map_err(from_store)?;
        let filters = physical_filters(session, &list.schema, arguments.filters().unwrap_or(&[]))?;
        let request =
            PlanRequest { projection: arguments.projection(), filters, limit: arguments.limit() };
        let manager = self.coscan.manager();
        let known = self.coscan.file_list_cache();
        let open = async || list.open(session, &self.coscan, store.clone(), &request).await;
        let source = known.find_or_open(manager, list.key(&store.1), open).await;
        if matches!(source, Err(DataFusionError::ResourcesExhausted(_))) {
            known.forget();
        }
        let Some(source) = source?.filter(|source| list.is_of(source, &store.1)) else {
            return Ok(None);
        };
        let source = ScanSource {
            name: self.name.clone(),
            direct_bytes_max: self.coscan.direct_bytes_max(),
            ..source.as_ref().clone()
        };
        planning::plan(session, &Arc::new(source), request).await.map(Some)
    }
}

#[async_trait]
impl TableProvider for SharedListingTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let arguments = ScanArgs::default()
            .with_projection(projection.map(Vec::as_slice))
            .with_filters(Some(filters))
            .with_limit(limit);
        Ok(self.scan_with_args(session, arguments).await?.into_inner())
    }

    async fn scan_with_args<'a>(
        &self,
        session: &dyn Session,
        arguments: ScanArgs<'a>,
    ) -> Result<ScanResult> {
        let plan = self.table.scan_with_args(session, arguments.clone()).await?.into_inner();
        let shared = self.share(session, &plan, &arguments).await.unwrap_or_else(|error| {
            debug!("the engine reads {} itself: {error}", self.name);
            None
        });
        Ok(ScanResult::new(shared.unwrap_or(plan)))
    }
}
