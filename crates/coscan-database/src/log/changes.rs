//! The changes of a transaction as a record.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coscan_pdt::{FileChanges, RowId, Sid, Transaction};

use super::record::{Record, Replaced, StoredRow, StoredRows, TableRecord};
use crate::rewrite::FileRewrite;
use crate::table::TableId;
use crate::table_transaction::TableTransaction;
use crate::version::TableVersion;

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
    /// A checkpoint of a table, which was `before` when it began.
    pub(crate) fn of_checkpoint(
        table: TableId,
        before: &TableVersion<V>,
        rewrites: &[FileRewrite<V>],
        now: u64,
    ) -> Self {
        let mut record = TableRecord { retired_since: now, ..TableRecord::new(table) };
        for rewrite in rewrites {
            let mut by = rewrite.id.zip(rewrite.file.clone());
            record.replaced.extend(rewrite.replaced().map(|id| Replaced { id, by: by.take() }));
            record.added.extend(by);
            if rewrite.has_inserted() {
                record.folded = runs(before.inserted().tail().map(|insert| insert.id().0));
            }
            let rows = changed_rows(&rewrite.changes);
            record.files.extend(rewrite.id.filter(|_| !rows.is_empty()).map(|id| (id, rows)));
        }
        Self { changed: vec![record], ..Self::default() }
    }
}

/// The rows of a file that are not as the file has them.
pub(super) fn changed_rows<V: Clone>(changes: &FileChanges<V>) -> StoredRows<V> {
    let all = changes.range(Sid(0)..Sid(changes.row_count()));
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
fn runs(numbers: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
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
