//! The open files of a managed table.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use coscan_database::{ChangedFile, Database, FileId, TableVersion};
use coscan_storage::pdt::Sid;
use coscan_storage::table::{TableChanges, TableColumns, TableFile, Value};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::error::Result;
use tokio::sync::Mutex;

use crate::managed::data_files::DataFiles;
use crate::tables::opener::Opener;
use crate::tables::snapshot_source::{SnapshotFile, TableSnapshot};
use crate::tables::source::ScanSource;

/// The files of a table that were opened last.
#[derive(Default)]
pub(crate) struct OpenedFiles(Mutex<Opened>);

#[derive(Default)]
struct Opened {
    files: BTreeMap<FileId, TableFile>,
    /// The table of some files, without changes.
    base: Option<(Vec<FileId>, Arc<ScanSource>)>,
}

impl OpenedFiles {
    /// The table of the files of a version, with room for its inserted rows and without changes. Files are opened unless they
    /// are those that were opened last.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub(crate) async fn table_of(
        &self,
        version: &TableVersion<Value>,
        files: &DataFiles,
        opener: &Opener,
        (columns, row_numbers): (&SchemaRef, &FieldRef),
    ) -> Result<Arc<ScanSource>> {
        let ids: Vec<FileId> = version.files().iter().map(|file| file.id).collect();
        let inserted = version.inserted().visible_rows();
        let mut opened = self.0.lock().await;
        if let Some((known, base)) = &opened.base
            && *known == ids
            && base.table.table().inserted_max() >= inserted
        {
            return Ok(Arc::clone(base));
        }
        opened.files.retain(|id, _| ids.contains(id));
        for file in version.files() {
            if let Entry::Vacant(entry) = opened.files.entry(file.id) {
                entry.insert(files.table_file(&file.file.path).await?);
            }
        }
        let listed = ids.iter().map(|id| SnapshotFile::from(opened.files[id].clone()));
        let snapshot = TableSnapshot {
            files: listed.collect(),
            columns: Some(Arc::clone(columns)),
            ..TableSnapshot::default()
        };
        let columns = TableColumns {
            row_numbers: Some(Arc::clone(row_numbers)),
            inserted_rows_max: Some(inserted),
            ..snapshot.table_columns()?
        };
        let base = Arc::new(opener.open_with(&snapshot, columns).await?);
        opened.base = Some((ids, Arc::clone(&base)));
        Ok(base)
    }
}

/// The changes of a version, as a scan merges them.
pub(crate) fn changes_of(version: &TableVersion<Value>) -> TableChanges {
    TableChanges {
        files: version.files().iter().map(|file| Some(Arc::clone(&file.changes))).collect(),
        inserted: Some(Arc::clone(version.inserted())),
        held: None,
    }
}

/// About the memory that the changes of all tables take, in bytes.
pub(crate) fn change_bytes(versions: &Database<Value>) -> u64 {
    let transaction = versions.begin();
    let tables = versions.tables().into_iter();
    let tables = tables.filter_map(|table| transaction.version(table.id).ok());
    tables.map(|version| changes_of(&version).memory_bytes()).sum()
}

/// Whether all changed values are of the types of the columns, and inserted rows have all of them.
pub(crate) fn fits_columns(version: &TableVersion<Value>, columns: &Schema) -> bool {
    let types: Vec<_> = columns.fields().iter().map(|field| field.data_type()).collect();
    let fits_row = |row: &[Value]| {
        row.len() == types.len() && row.iter().zip(&types).all(|(value, kind)| value.fits(kind))
    };
    let fits_file = |file: &ChangedFile<Value>| {
        let all = file.changes.range(Sid(0)..Sid(file.file.rows));
        all.patched_columns().into_iter().all(|column| {
            let kind = types.get(column as usize);
            kind.is_some_and(|kind| all.patches(column).all(|(_, value)| value.fits(kind)))
        })
    };
    version.inserted().tail().all(|insert| fits_row(insert.row()))
        && version.files().iter().all(fits_file)
}
