//! A table of a session whose scans are shared.

use std::sync::Arc;

use async_trait::async_trait;
use coscan_runtime::{BufferManager, SharedTable};
use coscan_storage::table::{FileOptions, ParquetFile, ParquetTable};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Statistics};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, SortExpr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use log::debug;

use crate::error::from_table;
use crate::exec::SharedScanExec;
use crate::location::Places;
use crate::partitions::{self, TableListing};
use crate::session::Coscan;
use crate::source::{PlanSettings, ScanSource};
use crate::{direct, order, statistics};

/// A table whose scans all queries share, to be registered with a session.
///
/// `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes one in a session with [`Coscan`] installed. The table's pages
/// leave the pool when the last clone is dropped and the last query on it has ended.
#[derive(Clone, Debug)]
pub struct SharedTableProvider {
    source: Arc<ScanSource>,
    definition: Option<String>,
}

impl SharedTableProvider {
    /// Opens the Parquet files at some locations (files, directories, patterns; paths or URLs) as one table, from the
    /// stores of `coscan`.
    ///
    /// # Errors
    /// If a location leads to no files, they cannot be read, or have different columns.
    pub async fn open(coscan: &Coscan, locations: &[String]) -> Result<Self> {
        let places = Places {
            stores: coscan.stores(),
            runtime: None,
            ignores_subdirectories: true,
            takes_any_name: false,
        };
        let files = places.list(locations).await?;
        let partitions = partitions::infer(&files)?;
        let listing = TableListing::new(files, &partitions, None)?;
        let name = locations.first().map_or_else(String::new, |location| short_name(location));
        Self::open_files(coscan, listing, coscan.table_options(), name, Vec::new()).await
    }

    /// A provider of a table that is registered with a manager already. It declares no order.
    ///
    /// # Errors
    /// If the statistics of a file cannot be understood.
    pub fn new(manager: &BufferManager, table: &SharedTable) -> Result<Self> {
        let files = table.table().parquet_files();
        let name =
            files.first().map_or_else(String::new, |file| short_name(&file.version().to_string()));
        Self::of_table(&Coscan::new(manager), table.clone(), name, &[])
    }

    pub(crate) async fn open_files(
        coscan: &Coscan,
        listing: TableListing,
        options: FileOptions,
        name: String,
        orders: Vec<Vec<SortExpr>>,
    ) -> Result<Self> {
        let TableListing { files, columns } = listing;
        let files = ParquetFile::open_all(files, options).await.map_err(from_table)?;
        let table = ParquetTable::with_columns(files, columns).map_err(from_table)?;
        let table = coscan.manager().register(Arc::new(table));
        Self::of_table(coscan, table, name, &orders)
    }

    fn of_table(
        coscan: &Coscan,
        table: SharedTable,
        name: String,
        orders: &[Vec<SortExpr>],
    ) -> Result<Self> {
        let (files, statistics) = statistics::of_table(table.table())?;
        let orderings = order::of_files(table.table(), &files, orders)?;
        let source = ScanSource {
            manager: coscan.manager().clone(),
            table,
            name,
            files,
            statistics: Arc::new(statistics),
            orderings,
            direct_bytes_max: coscan.direct_bytes_max(),
        };
        Ok(Self { source: Arc::new(source), definition: None })
    }

    /// The same table, its rows in these orders, as `WITH ORDER` declares: scans of it are in order. It shares pages with
    /// this one. An order that the files one after another do not keep is dropped.
    ///
    /// # Errors
    /// If an order names a column that the table does not have.
    pub fn with_orders(&self, orders: &[Vec<SortExpr>]) -> Result<Self> {
        let source = self.source.as_ref().clone();
        let orderings = order::of_files(self.table().table(), &source.files, orders)?;
        let source = Arc::new(ScanSource { orderings, ..source });
        Ok(Self { source, definition: self.definition.clone() })
    }

    /// The same with the statement that made it.
    #[must_use]
    pub(crate) fn with_definition(self, definition: Option<String>) -> Self {
        Self { definition, ..self }
    }

    /// The table that it shares.
    #[must_use]
    pub fn table(&self) -> &SharedTable {
        &self.source.table
    }

    /// Filters as the scan sees them; those that it cannot use are applied above it in any case.
    fn physical_filters(
        &self,
        session: &dyn Session,
        filters: &[Expr],
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let schema = DFSchema::try_from(self.schema())?;
        let physical = |filter: &Expr| {
            let expression = session.create_physical_expr(filter.clone(), &schema);
            expression.inspect_err(|error| debug!("{filter} does not prune: {error}")).ok()
        };
        Ok(filters.iter().filter_map(physical).collect())
    }
}

#[async_trait]
impl TableProvider for SharedTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.source.table.table().schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
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
        let filters = self.physical_filters(session, filters)?;
        let columns = self.source.table.table().schema().fields().len();
        let projection = projection.cloned().unwrap_or_else(|| (0..columns).collect());
        let settings = PlanSettings::of_session(session.config());
        let scan = SharedScanExec::new(Arc::clone(&self.source), projection, filters, settings)?;
        let scan = scan.with_limit(limit);
        match direct::plan(session, &self.source, &scan.wish())? {
            Some(direct) => Ok(direct),
            None => Ok(Arc::new(scan)),
        }
    }
}

/// The last part of a location, without the ending of its name.
fn short_name(location: &str) -> String {
    let trimmed = location.trim_end_matches('/');
    let last = trimmed.rsplit('/').next().unwrap_or(trimmed);
    last.strip_suffix(".parquet").unwrap_or(last).to_owned()
}
