//! Lists the files of a table. Each list makes a snapshot.

use std::sync::Arc;

use coscan_runtime::SharedTable;
use coscan_storage::stores::Stores;
use coscan_storage::table::{FileOptions, ParquetTable};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::SortExpr;

use crate::error::{from_open, from_table};
use crate::options::CoscanOptions;
use crate::tables::hive::TableListing;
use crate::tables::location::{FileLocator, ListedFile};
use crate::tables::order;
use crate::tables::source::ScanSource;
use crate::tables::statistics;
use crate::tables::stored_order;

/// The definition of a table, independent of its current files.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) coscan: CoscanOptions,
    /// The name in EXPLAIN.
    pub(crate) name: String,
    pub(crate) locations: Vec<String>,
    pub(crate) stores: Stores,
    /// The runtime of a session, whose stores take precedence.
    pub(crate) runtime: Option<Arc<RuntimeEnv>>,
    pub(crate) ignores_subdirectories: bool,
    pub(crate) takes_any_name: bool,
    pub(crate) options: FileOptions,
    pub(crate) orders: Vec<Vec<SortExpr>>,
    /// The columns of directories.
    pub(crate) partitions: Vec<FieldRef>,
    /// The columns that are read from the files. `None` reads all.
    pub(crate) columns: Option<SchemaRef>,
}

impl Listing {
    /// The current files, in the order of locations and then of paths.
    pub(crate) async fn files(&self) -> Result<Vec<ListedFile>> {
        let locator = FileLocator {
            stores: &self.stores,
            runtime: self.runtime.as_deref(),
            ignores_subdirectories: self.ignores_subdirectories,
            takes_any_name: self.takes_any_name,
        };
        locator.list(&self.locations).await
    }

    /// A snapshot of these files. The footers of files that are not open yet are read.
    pub(crate) async fn snapshot(&self, files: Vec<ListedFile>) -> Result<ScanSource> {
        let listing = TableListing::new(files, &self.partitions, self.columns.clone())?;
        let TableListing { files, columns } = listing;
        let files = self.coscan.manager().open_files(files, self.options).await;
        let table = ParquetTable::with_columns(files.map_err(from_open)?, columns);
        let table = table.map_err(from_table)?;
        let locations = self.locations.iter().map(|location| ListingTableUrl::parse(location).ok());
        let identity = match locations.collect::<Option<Vec<_>>>() {
            Some(urls) => identity(&urls, self.options),
            None => format!("{:?} {:?}", self.locations, self.options),
        };
        registered(&self.coscan, self.name.clone(), &identity, table, &self.orders)
    }

    /// Sets the columns to those of a snapshot, so that files listed later are read with the same columns.
    pub(crate) fn with_columns_of(self, source: &ScanSource) -> Self {
        let fields = source.table.table().schema().fields().iter();
        let is_stored = |field: &&FieldRef| {
            self.partitions.iter().all(|partition| partition.name() != field.name())
        };
        let stored: Vec<_> = fields.filter(is_stored).cloned().collect();
        Self { columns: Some(Arc::new(Schema::new(stored))), ..self }
    }
}

/// The identity of a table, which consists of the places where its files are listed, and of how they are opened.
/// Snapshots with the same identity are scheduled together.
pub(crate) fn identity(urls: &[ListingTableUrl], options: FileOptions) -> String {
    let pattern = |url: &ListingTableUrl| url.get_glob().as_ref().map(ToString::to_string);
    let locations: Vec<_> = urls.iter().map(|url| (url.as_str(), pattern(url))).collect();
    format!("{locations:?} {options:?}")
}

/// Registers a table as a snapshot of the one with this identity, and returns its source.
pub(crate) fn registered(
    coscan: &CoscanOptions,
    name: String,
    identity: &str,
    table: ParquetTable,
    orders: &[Vec<SortExpr>],
) -> Result<ScanSource> {
    let shared = coscan.manager().register_snapshot(identity, Arc::new(table));
    shared.set_title(&name);
    source_of(coscan, name, shared, orders)
}

/// The source of a registered table.
pub(crate) fn source_of(
    coscan: &CoscanOptions,
    name: String,
    shared: SharedTable,
    orders: &[Vec<SortExpr>],
) -> Result<ScanSource> {
    let (files, statistics) = statistics::of_table(shared.table())?;
    let declared = order::of_files(shared.table(), &files, orders)?;
    let stored_order = match orders.is_empty() {
        true => stored_order::of_files(shared.table()),
        false => None,
    };
    Ok(ScanSource {
        manager: coscan.manager().clone(),
        table: shared,
        name,
        files: Arc::new(files),
        statistics: Arc::new(statistics),
        orderings: declared,
        stored_order,
        direct_bytes_max: coscan.direct_bytes_max(),
        listed_by_query: false,
    })
}
