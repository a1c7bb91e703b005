//! A table of a session whose scans are shared.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_runtime::{BufferManager, SharedTable};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Statistics, not_impl_err, plan_err};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{CreateExternalTable, Expr, SortExpr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use crate::options::CoscanOptions;
use crate::tables::hive;
use crate::tables::insert::plan_insert;
use crate::tables::listing::Listing;
use crate::tables::location::{ListedFile, name_of};
use crate::tables::opener::{self, Identity, Opener};
use crate::tables::replica;
use crate::tables::snapshot_source::{SnapshotSource, SnapshotTime, TableSnapshot};
use crate::tables::snapshots::Snapshots;
use crate::tables::source;
use crate::tables::statement_snapshot::StatementSnapshot;

/// A table whose scans are shared by all queries, to be registered with a session.
///
/// `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes one in a session with [`CoscanOptions`] installed. It has the
/// files that existed when it was made or last [refreshed](Self::refresh). Tables that list the same file share its
/// pages, which leave the pool when no table lists the file any more.
#[derive(Clone, Debug)]
pub struct SharedTableProvider {
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) replicas: Vec<Arc<Snapshots>>,
    /// The columns that statements are planned with; `None` for those of the current snapshot.
    columns: Option<SchemaRef>,
    definition: Option<String>,
    /// The statement that created the table, if the engine can insert into such a table.
    created_by: Option<Arc<CreateExternalTable>>,
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
            locations: locations.to_vec(),
            stores: coscan.stores().clone(),
            runtime: None,
            ignores_subdirectories: true,
            takes_any_name: false,
            partitions: Vec::new(),
            columns: None,
        };
        let files = listing.files().await?;
        listing.partitions = hive::infer(&files)?;
        let (options, orders) = (coscan.table_options(), Vec::new());
        let identity = Identity::Named(listing.identity(options));
        let opener =
            Opener { coscan: coscan.clone(), name: name.to_owned(), identity, options, orders };
        Self::of_listing(opener, listing, files).await
    }

    /// Opens a table whose snapshots come from a source, such as the log of a table format. `name` is its name in EXPLAIN
    /// and reports. `identity` names the table among all of the manager: it consists of all that says where its files are.
    /// Tables of the same identity are scheduled together.
    ///
    /// # Errors
    /// If the source has no snapshot, or its files cannot be opened.
    pub async fn from_source(
        coscan: &CoscanOptions,
        name: &str,
        identity: &str,
        source: Arc<dyn SnapshotSource>,
    ) -> Result<Self> {
        let Some(first) = source.newest(None).await? else {
            return plan_err!("table {name} has no snapshot");
        };
        let (options, orders) = (coscan.table_options(), Vec::new());
        let identity = Identity::Named(format!("{identity} {options:?}"));
        let opener =
            Opener { coscan: coscan.clone(), name: name.to_owned(), identity, options, orders };
        Ok(Self::of_snapshots(Snapshots::from_source(opener, source, first).await?))
    }

    /// Creates a provider of a table that is registered with a manager already. It declares no order, and its files are
    /// fixed. Its footers count against the budget from now on. They are dropped when memory is short and nothing else
    /// holds them.
    ///
    /// # Errors
    /// If the statistics of a file cannot be decoded.
    pub fn new(manager: &BufferManager, table: &SharedTable) -> Result<Self> {
        let parquet = table.table();
        manager.adopt_files(parquet.parquet_files());
        let name = parquet
            .parquet_files()
            .first()
            .map_or_else(String::new, |file| source::short_name(&file.version().to_string()));
        let coscan = CoscanOptions::new(manager);
        let source = opener::source_of(&coscan, name.clone(), table.clone(), &[])?;
        let identity = Identity::Registered(table.registration());
        let (options, orders) = (coscan.table_options(), Vec::new());
        let opener = Opener { coscan, name, identity, options, orders };
        let snapshot = TableSnapshot::of_table(parquet)?;
        Ok(Self::of_snapshots(Snapshots::fixed(opener, snapshot, source)))
    }

    pub(crate) async fn of_listing(
        opener: Opener,
        listing: Listing,
        files: Vec<ListedFile>,
    ) -> Result<Self> {
        let first = listing.snapshot(files)?;
        let snapshots = Snapshots::from_source(opener, Arc::new(listing), first).await?;
        Ok(Self::of_snapshots(snapshots))
    }

    fn of_snapshots(snapshots: Snapshots) -> Self {
        Self {
            snapshots: Arc::new(snapshots),
            replicas: Vec::new(),
            columns: None,
            definition: None,
            created_by: None,
        }
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
        Ok(Self { snapshots: Arc::new(snapshots), created_by: None, ..self.clone() })
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
        if self.snapshots.may_change_columns() {
            return plan_err!("a table whose columns may change has no replicas");
        }
        let table = self.snapshots.current().await?;
        let replica = replica.snapshots.as_replica_of(&table).await?;
        let replicas = self.replicas.into_iter().chain([Arc::new(replica)]).collect();
        Ok(Self { replicas, ..self })
    }

    /// Sets the statement that created the table.
    #[must_use]
    pub fn with_definition(self, definition: Option<String>) -> Self {
        Self { definition, ..self }
    }

    /// The same table for one statement, whose columns stay those of the current snapshot while it is planned.
    #[must_use]
    pub fn with_current_columns(&self) -> Self {
        Self { columns: Some(self.snapshots.schema()), ..self.clone() }
    }

    /// Lets the engine insert into the table, as into the one that the statement would create without coscan.
    pub(crate) fn with_inserts(self, created_by: CreateExternalTable) -> Self {
        Self { created_by: Some(Arc::new(created_by)), ..self }
    }

    /// Whether both are the same table, with the same replicas.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let copies = |table: &Self| {
            let copies = std::iter::once(&table.snapshots).chain(&table.replicas);
            copies.map(Arc::as_ptr).collect::<Vec<_>>()
        };
        copies(self) == copies(other)
    }

    /// The current shared table.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again.
    pub async fn table(&self) -> Result<SharedTable> {
        Ok(self.snapshots.current().await?.table.clone())
    }

    /// Looks for a newer snapshot: lists the files again, or reads the log of a table format. Queries planned from now on
    /// see it, with the columns that the table has had from the start unless its source may change them. Running queries
    /// keep their files. Only new files are opened.
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
    pub(super) fn refreshed_copies(&self) -> impl Iterator<Item = &Arc<Snapshots>> {
        let copies = std::iter::once(&self.snapshots).chain(&self.replicas);
        copies.take_while(|_| self.snapshots.is_refreshed())
    }

    /// The table as it was at an earlier moment.
    ///
    /// # Errors
    /// If the table keeps no earlier snapshots, or this one does not exist or is gone.
    pub async fn at(&self, moment: SnapshotTime) -> Result<Arc<dyn TableProvider>> {
        let source = self.snapshots.at(moment).await?;
        Ok(Arc::new(StatementSnapshot::new(Arc::new(source), Vec::new())))
    }
}

#[async_trait]
impl TableProvider for SharedTableProvider {
    fn schema(&self) -> SchemaRef {
        self.columns.clone().unwrap_or_else(|| self.snapshots.schema())
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
        let pinned = self.statement_snapshot(session).await?;
        pinned.scan(session, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(created_by) = self.created_by.as_ref().filter(|_| self.replicas.is_empty()) else {
            return not_impl_err!(
                "rows can be inserted only into a table that CREATE EXTERNAL TABLE made of a directory of Parquet files, \
                 without replicas and options of a store"
            );
        };
        plan_insert(session, created_by, &self.snapshots, input, operation).await
    }
}
