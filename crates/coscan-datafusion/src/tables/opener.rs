//! Opens the files of a snapshot again after their footers were dropped.

use std::sync::Arc;

use coscan_runtime::Registration;
use coscan_storage::table::{FileOptions, ParquetTable, TableColumns, TableFile};
use datafusion::arrow::datatypes::Schema;
use datafusion::error::Result;
use datafusion::logical_expr::SortExpr;

use crate::error::{from_open, from_table};
use crate::options::CoscanOptions;
use crate::tables::listing::{Listing, source_of};
use crate::tables::location::ListedFile;
use crate::tables::replica::{fields_of, stored_fields};
use crate::tables::source::ScanSource;
use crate::tables::statistics::stored_columns;

/// The source of a snapshot.
#[derive(Clone, Debug)]
pub(crate) enum Opener {
    /// A list of files, which may be listed again.
    Listed(Listing),
    /// A table that a program has registered.
    Registered(RegisteredTable),
}

/// A registered table without its footers.
#[derive(Clone, Debug)]
pub(crate) struct RegisteredTable {
    coscan: CoscanOptions,
    name: String,
    registration: Registration,
    files: Vec<(TableFile, FileOptions)>,
    columns: TableColumns,
    orders: Vec<Vec<SortExpr>>,
}

impl Opener {
    /// An opener for the table of a source, without orders.
    pub(crate) fn registered(coscan: CoscanOptions, source: &ScanSource) -> Self {
        let table = source.table.table();
        let files = table.parquet_files().iter();
        let columns = TableColumns {
            declared: Some(stored_columns(table)),
            constants: table.constants().to_vec(),
        };
        Self::Registered(RegisteredTable {
            coscan,
            name: source.name.clone(),
            registration: source.table.registration(),
            files: files.map(|file| (file.file().clone(), file.options())).collect(),
            columns,
            orders: Vec::new(),
        })
    }

    pub(crate) fn with_orders(self, orders: &[Vec<SortExpr>]) -> Self {
        let orders = orders.to_vec();
        match self {
            Self::Listed(listing) => Self::Listed(Listing { orders, ..listing }),
            Self::Registered(table) => Self::Registered(RegisteredTable { orders, ..table }),
        }
    }

    /// Sets the columns to those of a table, all of which its files have.
    pub(crate) fn with_columns(self, table: &Schema) -> Self {
        match self {
            Self::Listed(listing) => {
                let partitions = fields_of(table, &listing.partitions);
                let columns = Some(Arc::new(stored_fields(table, &partitions)));
                Self::Listed(Listing { columns, partitions, ..listing })
            }
            Self::Registered(registered) => {
                let constants = registered.columns.constants;
                let fields: Vec<_> =
                    constants.iter().map(|constant| Arc::clone(&constant.field)).collect();
                let declared = Some(Arc::new(stored_fields(table, &fields)));
                let columns = TableColumns { declared, constants };
                Self::Registered(RegisteredTable { columns, ..registered })
            }
        }
    }

    /// Opens listed files, or those of the registered table.
    pub(crate) async fn open(&self, listed: &[ListedFile]) -> Result<ScanSource> {
        match self {
            Self::Listed(listing) => listing.snapshot(listed.to_vec()).await,
            Self::Registered(table) => table.open().await,
        }
    }
}

impl RegisteredTable {
    async fn open(&self) -> Result<ScanSource> {
        let mut opened = Vec::with_capacity(self.files.len());
        for files in self.files.chunk_by(|(_, a), (_, b)| a == b) {
            let to_open = files.iter().map(|(file, _)| file.clone());
            let open = self.coscan.manager().open_files(to_open, files[0].1).await;
            opened.extend(open.map_err(from_open)?);
        }
        let table = ParquetTable::with_columns(opened, self.columns.clone()).map_err(from_table)?;
        let table = self.registration.register(Arc::new(table));
        source_of(&self.coscan, self.name.clone(), table, &self.orders)
    }
}
