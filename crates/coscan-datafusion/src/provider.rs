//! A table of a session whose scans are shared.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coscan_runtime::{BufferManager, SharedTable};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Statistics, TableReference, plan_err};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, SortExpr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use crate::coscan::Coscan;
use crate::listing::Listing;
use crate::location::ListedFile;
use crate::planning::PlanRequest;
use crate::settings::SessionSettings;
use crate::snapshots::Snapshots;
use crate::source::ScanSource;
use crate::{order, partitions, planning, source, statistics};

/// A table whose scans all queries share, to be registered with a session.
///
/// `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes one in a session with [`Coscan`] installed. Its files are those that
/// were there when it was made, or was [refreshed](Self::refresh). Tables that list the same file share its pages; those
/// leave the pool when nobody lists the file any more.
#[derive(Clone, Debug)]
pub struct SharedTableProvider {
    snapshots: Arc<Snapshots>,
    /// The columns of all snapshots.
    schema: SchemaRef,
    definition: Option<String>,
}

impl SharedTableProvider {
    /// Opens the Parquet files at some locations (files, directories, patterns; paths or URLs) as one table, from the
    /// stores of `coscan`.
    ///
    /// # Errors
    /// If a location leads to no files, they cannot be read, or have columns that do not fit together.
    pub async fn open(coscan: &Coscan, locations: &[String]) -> Result<Self> {
        let mut listing = Listing {
            coscan: coscan.clone(),
            name: locations
                .first()
                .map_or_else(String::new, |location| source::short_name(location)),
            locations: locations.to_vec(),
            stores: coscan.stores().clone(),
            runtime: None,
            ignores_subdirectories: true,
            takes_any_name: false,
            options: coscan.table_options(),
            orders: Vec::new(),
            partitions: Vec::new(),
            columns: None,
        };
        let files = listing.files().await?;
        listing.partitions = partitions::infer(&files)?;
        Self::of_listing(listing, files).await
    }

    /// A provider of a table that is registered with a manager already. It declares no order, and its files are fixed.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    pub fn new(manager: &BufferManager, table: &SharedTable) -> Result<Self> {
        let files = table.table().parquet_files();
        let name = files
            .first()
            .map_or_else(String::new, |file| source::short_name(&file.version().to_string()));
        let (files, statistics) = statistics::of_table(table.table())?;
        let schema = Arc::clone(table.table().schema());
        let source = ScanSource {
            manager: manager.clone(),
            table: table.clone(),
            name,
            files: Arc::new(files),
            statistics: Arc::new(statistics),
            orderings: Vec::new(),
            stored_order: None,
            direct_bytes_max: Coscan::new(manager).direct_bytes_max(),
            listed_by_query: false,
        };
        Ok(Self::of_snapshots(Snapshots::fixed(source), schema))
    }

    pub(crate) async fn of_listing(listing: Listing, files: Vec<ListedFile>) -> Result<Self> {
        let source = listing.snapshot(files.clone()).await?;
        let schema = Arc::clone(source.table.table().schema());
        Ok(Self::of_snapshots(Snapshots::of(listing, files, source), schema))
    }

    fn of_snapshots(snapshots: Snapshots, schema: SchemaRef) -> Self {
        Self { snapshots: Arc::new(snapshots), schema, definition: None }
    }

    /// The files that the table has now, its rows in these orders, as `WITH ORDER` declares: scans of it are in order. It
    /// shares pages with this one. An order that the files one after another do not keep is dropped. It is not refreshed.
    ///
    /// # Errors
    /// If an order names a column that the table does not have, or its footers went as memory was short and cannot be
    /// read again.
    pub async fn with_orders(&self, orders: &[Vec<SortExpr>]) -> Result<Self> {
        let ordered = |source: ScanSource| {
            let orderings = order::of_files(source.table.table(), &source.files, orders)?;
            Ok(ScanSource { orderings, stored_order: None, ..source })
        };
        let declared = |listing| Listing { orders: orders.to_vec(), ..listing };
        let snapshots = self.snapshots.fixed_with(ordered, declared).await?;
        let schema = Arc::clone(&self.schema);
        Ok(Self { definition: self.definition.clone(), ..Self::of_snapshots(snapshots, schema) })
    }

    /// The same with the statement that made it.
    #[must_use]
    pub(crate) fn with_definition(self, definition: Option<String>) -> Self {
        Self { definition, ..self }
    }

    /// The table that it shares, as it is now.
    ///
    /// # Errors
    /// If its footers went as memory was short, and cannot be read again.
    pub async fn table(&self) -> Result<SharedTable> {
        Ok(self.snapshots.current().await?.table.clone())
    }

    /// Lists the files again. Queries that are planned from now on see those that are there now, with the columns that the
    /// table has had from the start; queries that run go on with what they have. Only files that are new are opened.
    ///
    /// # Errors
    /// If the files cannot be listed or opened, or a new one does not fit the columns. The table then stays as it was.
    pub async fn refresh(&self) -> Result<()> {
        self.snapshots.refresh(None).await
    }
}

#[async_trait]
impl TableProvider for SharedTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.snapshots.statistics().as_ref().clone())
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
        if let Some(seconds) = SessionSettings::of(session.config()).refresh {
            self.snapshots.refresh_after(Duration::from_secs(seconds)).await;
        }
        let source = self.snapshots.current().await?;
        let filters = planning::physical_filters(session, &self.schema, filters)?;
        let projection = projection.map(Vec::as_slice);
        planning::plan(session, &source, PlanRequest { projection, filters, limit }).await
    }
}

/// Lists the files of a table of a session again, as [`SharedTableProvider::refresh`] does.
///
/// # Errors
/// As there; or if there is no such table, or coscan did not make it.
pub async fn refresh(context: &SessionContext, table: impl Into<TableReference>) -> Result<()> {
    let table = table.into();
    let provider = context.table_provider(table.clone()).await?;
    match provider.downcast_ref::<SharedTableProvider>() {
        Some(shared) => shared.refresh().await,
        None => plan_err!(
            "{table} is no table of coscan's, so it is not refreshed; make it with CREATE EXTERNAL TABLE … STORED AS \
             PARQUET. DataFusion lists the files of tables that it made, and caches the lists as it is told to"
        ),
    }
}
