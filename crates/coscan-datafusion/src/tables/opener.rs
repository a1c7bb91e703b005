//! Opens the files of snapshots as tables, also after their footers were dropped.

use std::sync::Arc;

use coscan_runtime::{Registration, SharedTable};
use coscan_storage::table::{FileOptions, ParquetFile, ParquetTable, TableChanges, TableColumns};
use datafusion::error::Result;
use datafusion::logical_expr::SortExpr;

use crate::error::{from_open, from_table};
use crate::options::CoscanOptions;
use crate::tables::order;
use crate::tables::snapshot_source::TableSnapshot;
use crate::tables::source::ScanSource;
use crate::tables::statistics;
use crate::tables::stored_order;

/// The properties that all snapshots of a table have in common.
#[derive(Clone, Debug)]
pub(crate) struct Opener {
    pub(crate) coscan: CoscanOptions,
    /// The name in EXPLAIN.
    pub(crate) name: String,
    pub(crate) identity: Identity,
    pub(crate) options: FileOptions,
    pub(crate) orders: Vec<Vec<SortExpr>>,
}

/// The property by which snapshots of one table are known, so that they are scheduled together.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    Named(String),
    /// A table that a program has registered.
    Registered(Registration),
}

impl Opener {
    /// Opens a snapshot. The footers of files that are not open yet are read.
    pub(crate) async fn open(&self, snapshot: &TableSnapshot) -> Result<ScanSource> {
        self.open_with(snapshot, snapshot.table_columns()?).await
    }

    /// Opens a snapshot of a table with these declarations of its columns.
    pub(crate) async fn open_with(
        &self,
        snapshot: &TableSnapshot,
        columns: TableColumns,
    ) -> Result<ScanSource> {
        let opened = open_files(&self.coscan, snapshot, self.options).await?;
        let files = snapshot.files.iter().map(|file| file.changes.clone()).collect();
        let changes = TableChanges { files, ..TableChanges::default() };
        let table = ParquetTable::with_columns(opened, columns);
        let table = table.and_then(|table| table.with_changes(changes)).map_err(from_table)?;
        let source = match &self.identity {
            Identity::Named(identity) => {
                registered(&self.coscan, self.name.clone(), identity, table, &self.orders)
            }
            Identity::Registered(registration) => {
                let table = registration.register(Arc::new(table));
                source_of(&self.coscan, self.name.clone(), table, &self.orders)
            }
        };
        Ok(ScanSource { version: snapshot.version, ..source? })
    }
}

/// Opens the files of a snapshot, each with its own options or else with these.
pub(crate) async fn open_files(
    coscan: &CoscanOptions,
    snapshot: &TableSnapshot,
    options: FileOptions,
) -> Result<Vec<Arc<ParquetFile>>> {
    let mut opened = Vec::with_capacity(snapshot.files.len());
    for files in snapshot.files.chunk_by(|a, b| a.options == b.options) {
        let to_open = files.iter().map(|file| file.file.clone());
        let options = files[0].options.unwrap_or(options);
        let open = coscan.manager().open_files(to_open, options).await;
        opened.extend(open.map_err(from_open)?);
    }
    Ok(opened)
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
        version: None,
    })
}
