//! The engine's own tables of Parquet files, shared.
//!
//! The engine plans the scan: it lists the files, prunes partitions, and stops at a limit. A shared scan of the same
//! files replaces that plan if coscan can read them. Otherwise the plan stays, so that nothing fails here that the
//! engine can read.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{ScanArgs, ScanResult, Session, TableProvider};
use datafusion::common::Constraints;
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use log::debug;

use crate::datafusion_tables::file_list::FileList;
use crate::error::from_store;
use crate::options::CoscanOptions;
use crate::planning::plain_source::not_shared;
use crate::planning::plan::{self, Pushdown};
use crate::tables::location::store_of;
use crate::tables::source::short_name;

/// A shared scan, or the reason why there is none.
type Shared = std::result::Result<Arc<dyn ExecutionPlan>, String>;

/// A table of the engine for one query, whose scans are shared where possible.
#[derive(Debug)]
pub(crate) struct SharedListingTable {
    /// A [`ListingTable`].
    table: Arc<dyn TableProvider>,
    /// The name in EXPLAIN.
    name: String,
    /// Whether the query sorts the rows of the scan.
    is_sorted_above: bool,
    coscan: Arc<CoscanOptions>,
}

impl SharedListingTable {
    /// Wraps a table with this name in the query. Returns `None` if it is not one of the engine's own tables of Parquet
    /// files.
    pub(crate) fn of(
        table: Arc<dyn TableProvider>,
        name: &str,
        coscan: &Arc<CoscanOptions>,
    ) -> Option<Self> {
        let listing = table.downcast_ref::<ListingTable>()?;
        listing.options().format.downcast_ref::<ParquetFormat>()?;
        let (name, coscan) = (short_name(name), Arc::clone(coscan));
        Some(Self { table, name, is_sorted_above: false, coscan })
    }

    /// Sets whether the query sorts the rows of the scan.
    pub(crate) fn sorted_above(self, is_sorted_above: bool) -> Self {
        Self { is_sorted_above, ..self }
    }

    /// A shared scan of the files that a plan of the engine reads, or the reason why they are not shared.
    async fn share(
        &self,
        session: &dyn Session,
        plan: &Arc<dyn ExecutionPlan>,
        arguments: &ScanArgs<'_>,
    ) -> Result<Shared> {
        let table = self.table.downcast_ref::<ListingTable>();
        let options = self.coscan.table_options();
        let list = table.and_then(|table| FileList::of(table, &self.name, plan, options));
        let Some(list) = list else {
            return Ok(Err("options that coscan does not have".to_owned()));
        };
        // The engine saves the sort if the files declare their order and the table does not.
        if self.is_sorted_above && list.has_undeclared_order {
            return Ok(Err("only its files declare an order".to_owned()));
        }
        let url = list.table.table_paths()[0].get_url();
        let store = store_of(session.runtime_env(), self.coscan.stores(), url);
        let store = store.map_err(from_store)?;
        let (projection, limit) = (arguments.projection(), arguments.limit());
        let filters = arguments.filters().unwrap_or(&[]);
        let pushdown = Pushdown::of(session, &list.schema, projection, filters, limit)?;
        let open = async || list.open(session, &self.coscan, store.clone(), &pushdown).await;
        let key = list.key(&self.coscan, &store.1);
        let source = self.coscan.file_list_cache().find_or_open(key, open).await?;
        match source.filter(|source| list.is_of(source, &store.1)) {
            Some(source) => plan::plan(session, &source, &[], pushdown).await.map(Ok),
            None => Ok(Err("coscan cannot read these files as the engine does".to_owned())),
        }
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
            Err(error.strip_backtrace())
        });
        Ok(ScanResult::new(shared.unwrap_or_else(|reason| not_shared(plan, &reason))))
    }
}
