//! How the files of a table are listed. Each list makes a snapshot.

use std::sync::Arc;

use coscan_storage::stores::Stores;
use coscan_storage::table::{FileOptions, ParquetTable};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::SortExpr;

use crate::error::{from_open, from_table};
use crate::location::{ListedFile, Places};
use crate::partitions::TableListing;
use crate::session::Coscan;
use crate::source::ScanSource;
use crate::{order, statistics, stored_order};

/// What a table is, whatever its files are now.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) coscan: Coscan,
    /// For EXPLAIN.
    pub(crate) name: String,
    pub(crate) locations: Vec<String>,
    pub(crate) stores: Stores,
    /// The stores of a session, which win.
    pub(crate) runtime: Option<Arc<RuntimeEnv>>,
    pub(crate) ignores_subdirectories: bool,
    pub(crate) takes_any_name: bool,
    pub(crate) options: FileOptions,
    pub(crate) orders: Vec<Vec<SortExpr>>,
    /// The columns of directories.
    pub(crate) partitions: Vec<FieldRef>,
    /// What is read of the files; all that they have if it is not known yet.
    pub(crate) columns: Option<SchemaRef>,
}

impl Listing {
    /// The files that there are now, in the order of locations and then of paths.
    pub(crate) async fn files(&self) -> Result<Vec<ListedFile>> {
        let places = Places {
            stores: &self.stores,
            runtime: self.runtime.as_deref(),
            ignores_subdirectories: self.ignores_subdirectories,
            takes_any_name: self.takes_any_name,
        };
        places.list(&self.locations).await
    }

    /// A snapshot of these files. Footers are read of those that nobody has open.
    pub(crate) async fn snapshot(&self, files: Vec<ListedFile>) -> Result<ScanSource> {
        let listing = TableListing::new(files, &self.partitions, self.columns.clone())?;
        let TableListing { files, columns } = listing;
        let manager = self.coscan.manager();
        let files = manager.open_files(files, self.options).await.map_err(from_open)?;
        let table = ParquetTable::with_columns(files, columns).map_err(from_table)?;
        let shared = manager.register_snapshot(&self.identity(), Arc::new(table));
        let (files, statistics) = statistics::of_table(shared.table())?;
        let orderings = order::of_files(shared.table(), &files, &self.orders)?;
        let stored_order = match self.orders.is_empty() {
            true => stored_order::of_files(shared.table()),
            false => None,
        };
        Ok(ScanSource {
            manager: manager.clone(),
            table: shared,
            name: self.name.clone(),
            files,
            statistics: Arc::new(statistics),
            orderings,
            stored_order,
            direct_bytes_max: self.coscan.direct_bytes_max(),
        })
    }

    /// The same with the columns of a snapshot: files that come later are read as these.
    pub(crate) fn with_columns_of(self, source: &ScanSource) -> Self {
        let fields = source.table.table().schema().fields().iter();
        let is_stored = |field: &&FieldRef| {
            self.partitions.iter().all(|partition| partition.name() != field.name())
        };
        let stored: Vec<_> = fields.filter(is_stored).cloned().collect();
        Self { columns: Some(Arc::new(Schema::new(stored))), ..self }
    }

    /// What makes its snapshots those of one table.
    fn identity(&self) -> String {
        format!("{:?} {:?}", self.locations, self.options)
    }
}
