//! The changes of a transaction as a record.

use std::sync::Arc;

use coscan_pdt::{RowId, Transaction};

use super::record::{StoredRow, StoredRows, TableRecord};
use crate::table::TableId;
use crate::table_transaction::TableTransaction;

/// The changes of a transaction in a table. They are the same on every later version, since nobody else wrote the rows.
pub(crate) fn table_changes<V: Clone>(
    table: TableId,
    changes: &TableTransaction<V>,
) -> TableRecord<V> {
    let files = changes.files().iter().filter(|(_, file)| !file.writes().is_empty());
    TableRecord {
        table,
        added: changes.added().to_vec(),
        files: files.map(|(id, file)| (*id, stored_rows(file))).collect(),
        inserted: inserted_rows(changes.inserted()),
    }
}

fn stored_rows<V: Clone>(file: &Transaction<V>) -> StoredRows<V> {
    let rows = file.writes().iter().filter_map(|row| match row {
        RowId::Stable(sid) if file.changes().is_deleted(sid) => Some((sid, StoredRow::Deleted)),
        RowId::Stable(sid) => {
            let cells = file.changes().row_patches(sid);
            let cells = cells.map(|(column, value)| (column, value.clone()));
            Some((sid, StoredRow::Patched(cells.collect())))
        }
        RowId::Insert(_) => None,
    });
    rows.collect()
}

fn inserted_rows<V: Clone>(
    inserted: &Transaction<V>,
) -> Vec<(coscan_pdt::InsertId, Option<Arc<[V]>>)> {
    let rows = inserted.writes().iter().filter_map(|row| {
        let RowId::Insert(id) = row else { return None };
        let now = inserted.changes().insert_of(id).map(|insert| Arc::clone(insert.row()));
        // A row that came and went in the transaction was never there.
        let is_new = inserted.snapshot().insert_of(id).is_none();
        (now.is_some() || !is_new).then_some((id, now))
    });
    rows.collect()
}
