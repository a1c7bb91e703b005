//! A table of a session whose scans are shared.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coscan_runtime::{BufferManager, SharedTable};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Statistics, TableReference, plan_err};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::execution::cache::TableScopedPath;
use datafusion::logical_expr::{Expr, SortExpr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use crate::options::CoscanOptions;
use crate::planning::plan;
use crate::planning::plan::Pushdown;
use crate::settings::SessionSettings;
use crate::tables::hive;
use crate::tables::listing;
use crate::tables::listing::Listing;
use crate::tables::location::{ListedFile, name_of};
use crate::tables::replica;
use crate::tables::snapshots::Snapshots;
use crate::tables::source::{self, ScanSource};

/// A table whose scans are shared by all queries, to be registered with a session.
///
/// `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes one in a session with [`CoscanOptions`] installed. It has the
/// files that existed when it was made or last [refreshed](Self::refresh). Tables that list the same file share its
/// pages, which leave the pool when no table lists the file any more.
#[derive(Clone, Debug)]
pub struct SharedTableProvider {
    snapshots: Arc<Snapshots>,
    replicas: Vec<Arc<Snapshots>>,
    /// The columns of all snapshots.
    schema: SchemaRef,
    definition: Option<String>,
}

impl SharedTableProvider {
    /// Opens the Parquet files at some locations (files, directories, patterns; paths or URLs) as one table, from the
    /// stores of `coscan`.
    ///
    /// # Errors
    /// If a location has no files, they cannot be read, or their columns do not fit together.
    pub async fn open(coscan: &CoscanOptions, locations: &[String]) -> Result<Self> {
        let name = locations.first().map_or_else(String::new, |first| name_of(first));
        Self::open_as(coscan, &name, locations).await
    }

    /// Does the same as [`open`](Self::open), with a name for EXPLAIN and reports of the manager.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_as(coscan: &CoscanOptions, name: &str, locations: &[String]) -> Result<Self> {
        let mut listing = Listing {
            coscan: coscan.clone(),
            name: name.to_owned(),
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
        listing.partitions = hive::infer(&files)?;
        Self::of_listing(listing, files).await
    }

    /// Creates a provider of a table that is registered with a manager already. It declares no order, and its files are
    /// fixed. Its footers count against the budget from now on. They are dropped when memory is short and nothing else
    /// holds them.
    ///
    /// # Errors
    /// If the statistics of a file cannot be decoded.
    pub fn new(manager: &BufferManager, table: &SharedTable) -> Result<Self> {
        let files = table.table().parquet_files();
        manager.adopt_files(files);
        let name = files
            .first()
            .map_or_else(String::new, |file| source::short_name(&file.version().to_string()));
        let coscan = CoscanOptions::new(manager);
        let source = listing::source_of(&coscan, name, table.clone(), &[])?;
        let schema = Arc::clone(table.table().schema());
        Ok(Self::of_snapshots(Snapshots::registered(coscan, source), schema))
    }

    pub(crate) async fn of_listing(listing: Listing, files: Vec<ListedFile>) -> Result<Self> {
        let source = listing.snapshot(files.clone()).await?;
        let schema = Arc::clone(source.table.table().schema());
        Ok(Self::of_snapshots(Snapshots::of(listing, files, source), schema))
    }

    fn of_snapshots(snapshots: Snapshots, schema: SchemaRef) -> Self {
        Self { snapshots: Arc::new(snapshots), replicas: Vec::new(), schema, definition: None }
    }

    /// A table of the current files of this one, with declared orders as in `WITH ORDER`. A scan uses an order only
    /// where that saves a sort. Orders that the files, one after another, do not keep are dropped. The new table shares
    /// pages with this one, and is not refreshed.
    ///
    /// # Errors
    /// If an order names a column that the table does not have, or its footers were dropped to save memory and cannot
    /// be read again.
    pub async fn with_orders(&self, orders: &[Vec<SortExpr>]) -> Result<Self> {
        let snapshots = self.snapshots.with_orders(orders).await?;
        Ok(Self { snapshots: Arc::new(snapshots), ..self.clone() })
    }

    /// Adds a replica to the table: other files with the same rows, in another order, in other row groups, or with
    /// another page layout. Each scan reads the table, unless a replica costs at least an eighth less. The cost is the
    /// bytes to read for the scan's filters and columns. Bytes that are in the pool, or needed by running scans, count
    /// an eighth. EXPLAIN shows which copy is read, and why.
    ///
    /// The columns of both have the same names and types, in any order, and the footers must have equal numbers of
    /// rows. The caller has to ensure that the rows are the same. A replica is refreshed together with its table. While
    /// it has another number of rows, scans do not use it.
    ///
    /// # Errors
    /// If columns or numbers of rows differ, or footers were dropped to save memory and cannot be read again.
    pub async fn with_replica(self, replica: &Self) -> Result<Self> {
        let table = self.snapshots.current().await?;
        let replica = replica.snapshots.as_replica_of(&table).await?;
        let replicas = self.replicas.into_iter().chain([Arc::new(replica)]).collect();
        Ok(Self { replicas, ..self })
    }

    /// Sets the statement that created the table.
    #[must_use]
    pub(crate) fn with_definition(self, definition: Option<String>) -> Self {
        Self { definition, ..self }
    }

    /// The current shared table.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again.
    pub async fn table(&self) -> Result<SharedTable> {
        Ok(self.snapshots.current().await?.table.clone())
    }

    /// Lists the files again. Queries planned from now on see the current files, with the columns that the table has
    /// had from the start. Running queries keep their files. Only new files are opened.
    ///
    /// # Errors
    /// If the files of the table cannot be listed or opened, or a new file does not fit its columns. The table then
    /// stays unchanged. Also if a replica cannot be refreshed, or has another number of rows, although the table itself
    /// is refreshed.
    pub async fn refresh(&self) -> Result<()> {
        for copy in self.refreshed_copies() {
            copy.refresh(None).await?;
        }
        let table = self.snapshots.current().await?;
        for replica in &self.replicas {
            replica::check_rows(&table, &*replica.current().await?)?;
        }
        Ok(())
    }

    /// The table and its replicas, unless its list of files is fixed.
    fn refreshed_copies(&self) -> impl Iterator<Item = &Arc<Snapshots>> {
        let copies = std::iter::once(&self.snapshots).chain(&self.replicas);
        copies.take_while(|_| self.snapshots.is_refreshed())
    }

    /// The replicas that a query may read instead of a snapshot of the table, which are those with the same number of
    /// rows.
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
        // Without a cache of lists the engine lists the files of its tables for each query.
        let has_lists = session.runtime_env().cache_manager.get_list_files_cache().is_some();
        let interval = SessionSettings::of(session.config()).refresh_interval;
        if let Some(interval) = interval.or_else(|| (!has_lists).then_some(Duration::ZERO)) {
            for copy in self.refreshed_copies() {
                copy.refresh_after(interval).await;
            }
        }
        let source = self.snapshots.current().await?;
        let replicas = self.replicas_of(&source).await;
        let projection = projection.map(Vec::as_slice);
        let pushdown = Pushdown::of(session, &self.schema, projection, filters, limit)?;
        plan::plan(session, &source, &replicas, pushdown).await
    }
}

/// Lists the files of a session's table again, as [`SharedTableProvider::refresh`] does. The files of a table that
/// DataFusion made are listed by the next query, since their list is removed from the session's cache.
///
/// # Errors
/// As [`SharedTableProvider::refresh`]. Also if there is no such table, or it is neither a shared table nor one that
/// DataFusion made of files.
pub async fn refresh(context: &SessionContext, table: impl Into<TableReference>) -> Result<()> {
    let table = table.into();
    let provider = context.table_provider(table.clone()).await?;
    if let Some(shared) = provider.downcast_ref::<SharedTableProvider>() {
        return shared.refresh().await;
    }
    let Some(listing) = provider.downcast_ref::<ListingTable>() else {
        return plan_err!("{table} has no list of files, so there is nothing to refresh");
    };
    if let Some(lists) = context.runtime_env().cache_manager.get_list_files_cache() {
        for location in listing.table_paths() {
            let path = location.prefix().clone();
            lists.remove(&TableScopedPath { table: location.get_table_ref().clone(), path });
        }
    }
    Ok(())
}
