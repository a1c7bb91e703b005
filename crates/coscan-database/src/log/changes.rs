//! The changes of a transaction as a record.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coscan_pdt::{FileChanges, RowId, Sid, Transaction, WriteSet};

use super::record::{EncodedFiles, Record, Replaced, StoredRow, StoredRows, TableRecord};
use crate::rewrite::FileRewrite;
use crate::table::TableId;
use crate::table_transaction::TableTransaction;

/// The changes of a transaction in a table. They are the same on every later version, since nobody else wrote the rows.
pub(crate) fn table_changes<V: Clone>(
    table: TableId,
    changes: &TableTransaction<V>,
) -> TableRecord<V> {
    let files = changes.files().iter().filter(|(_, file)| !file.writes().is_empty());
    TableRecord {
        added: changes.added().to_vec(),
        files: files.map(|(id, file)| (*id, stored_rows(file))).collect(),
        inserted: inserted_rows(changes.inserted()),
        ..TableRecord::new(table)
    }
}

impl<V: Clone> Record<V> {
    /// A checkpoint of a table, with the rows of new files that were changed since they were written.
    pub(crate) fn of_checkpoint(
        table: TableId,
        rewrites: &[FileRewrite<V>],
        encoded_files: EncodedFiles,
        now: u64,
    ) -> Self {
        let new = TableRecord::new(table);
        let mut record = TableRecord { retired_since: now, encoded_files, ..new };
        for rewrite in rewrites {
            let mut by = rewrite.id.zip(rewrite.file.clone());
            record.replaced.extend(rewrite.replaced().map(|id| Replaced { id, by: by.take() }));
            record.added.extend(by);
            record.folded.extend(rewrite.folded.iter().cloned());
        }
        Self { changed: vec![record], ..Self::default() }
    }
}

/// Rows of a file as they are now.
pub(crate) fn rows_now<V: Clone>(
    changes: &FileChanges<V>,
    rows: impl IntoIterator<Item = Sid>,
) -> StoredRows<V> {
    let rows = rows.into_iter().map(|sid| match changes.is_deleted(sid) {
        true => (sid, StoredRow::Deleted),
        false => {
            let cells = changes.row_patches(sid);
            (
                sid,
                StoredRow::Patched(cells.map(|(column, value)| (column, value.clone())).collect()),
            )
        }
    });
    rows.collect()
}

/// The rows of a part of a file that are not as the file has them.
pub(super) fn changed_rows<V: Clone>(changes: &FileChanges<V>, part: Range<Sid>) -> StoredRows<V> {
    let all = changes.range(part);
    let mut rows: BTreeMap<Sid, StoredRow<V>> =
        all.deleted().map(|sid| (sid, StoredRow::Deleted)).collect();
    for column in all.patched_columns() {
        for (sid, value) in all.patches(column) {
            let row = rows.entry(sid).or_insert_with(|| StoredRow::Patched(Vec::new()));
            if let StoredRow::Patched(cells) = row {
                cells.push((column, value.clone()));
            }
        }
    }
    rows.into_iter().collect()
}

/// Ascending numbers as runs of consecutive ones.
pub(crate) fn runs(numbers: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

fn stored_rows<V: Clone>(file: &Transaction<V>) -> StoredRows<V> {
    rows_now(file.changes(), stable_rows(file.writes()))
}

/// The rows of a file among those that were written.
pub(crate) fn stable_rows(writes: &WriteSet) -> impl Iterator<Item = Sid> {
    writes.iter().filter_map(|row| match row {
        RowId::Stable(sid) => Some(sid),
        RowId::Insert(_) => None,
    })
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
