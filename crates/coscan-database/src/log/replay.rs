//! Records as a database again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coscan_pdt::{FileChanges, Insert, InsertId, Place, Sid};

use super::record::{Record, StoredRow, TableRecord};
use crate::error::Error;
use crate::table::{DataFile, FileId, Table, TableId};
use crate::version::{ChangedFile, TableVersion};

/// A database that is made of records, one after another.
pub(crate) struct Replay<V: Clone> {
    tables: BTreeMap<TableId, ReplayedTable<V>>,
    next_table: u64,
    next_file: u64,
    next_insert: u64,
    /// All files that were ever added, and the number of their rows.
    files: BTreeSet<FileId>,
    rows: u64,
}

/// More rows than all files of a database ever have.
const ROWS_MAX: u64 = 1 << 62;

struct ReplayedTable<V: Clone> {
    table: Table,
    /// The files, in order.
    files: Vec<(FileId, DataFile, FileChanges<V>)>,
    inserted: FileChanges<V>,
}

impl<V: Clone> Replay<V> {
    pub(crate) fn new() -> Self {
        Self {
            tables: BTreeMap::new(),
            next_table: 0,
            next_file: 0,
            next_insert: 0,
            files: BTreeSet::new(),
            rows: 0,
        }
    }

    /// Applies the next record.
    ///
    /// # Errors
    /// If it does not follow those before it.
    pub(crate) fn apply(&mut self, record: Record<V>) -> Result<(), Error> {
        for id in record.dropped {
            self.tables.remove(&id).ok_or(Error::NoSuchTable)?;
        }
        for table in record.created {
            let is_new = |other: &ReplayedTable<V>| other.table.name != table.name;
            if self.tables.contains_key(&table.id) || !self.tables.values().all(is_new) {
                return Err(Error::TableExists(table.name));
            }
            self.next_table = self.next_table.max(next(table.id.0)?);
            let (id, files, inserted) = (table.id, Vec::new(), FileChanges::new(0));
            self.tables.insert(id, ReplayedTable { table, files, inserted });
        }
        record.changed.into_iter().try_for_each(|changes| self.apply_changes(changes))
    }

    /// The numbers of the next table, file and inserted row.
    pub(crate) fn next_numbers(&self) -> [u64; 3] {
        [self.next_table, self.next_file, self.next_insert]
    }

    fn apply_changes(&mut self, changes: TableRecord<V>) -> Result<(), Error> {
        let table = self.tables.get_mut(&changes.table).ok_or(Error::NoSuchTable)?;
        for (id, file) in changes.added {
            self.next_file = self.next_file.max(next(id.0)?);
            self.rows = self
                .rows
                .checked_add(file.rows)
                .filter(|rows| *rows < ROWS_MAX)
                .ok_or(Error::NoSuchFile)?;
            if !self.files.insert(id) {
                return Err(Error::NoSuchFile);
            }
            let changes = FileChanges::new(file.rows);
            table.files.push((id, file, changes));
        }
        for (id, rows) in changes.files {
            let file = table.files.iter_mut().rev().find(|(other, ..)| *other == id);
            let (_, _, changes) = file.ok_or(Error::NoSuchFile)?;
            rows.into_iter().try_for_each(|(sid, row)| apply_stored(changes, sid, row))?;
        }
        for (id, row) in changes.inserted {
            self.next_insert = self.next_insert.max(next(id.0)?);
            apply_inserted(&mut table.inserted, id, row)?;
        }
        Ok(())
    }

    /// The tables as they are now.
    pub(crate) fn into_tables(self) -> BTreeMap<TableId, (Table, TableVersion<V>)> {
        let tables =
            self.tables.into_iter().map(|(id, ReplayedTable { table, files, inserted })| {
                let files = files.into_iter().map(|(id, file, changes)| {
                    let changes = Arc::new(changes);
                    ChangedFile { id, file, changes }
                });
                (id, (table, TableVersion::new(files.collect(), Arc::new(inserted))))
            });
        tables.collect()
    }
}

/// The number after one of the log.
fn next(number: u64) -> Result<u64, Error> {
    number.checked_add(1).ok_or(Error::NoSuchFile)
}

fn apply_stored<V: Clone>(
    changes: &mut FileChanges<V>,
    sid: Sid,
    row: StoredRow<V>,
) -> Result<(), Error> {
    match row {
        StoredRow::Deleted => changes.delete(sid)?,
        StoredRow::Patched(cells) => {
            for (column, value) in cells {
                changes.patch(sid, column, value)?;
            }
        }
    }
    Ok(())
}

fn apply_inserted<V: Clone>(
    inserted: &mut FileChanges<V>,
    id: InsertId,
    row: Option<Arc<[V]>>,
) -> Result<(), Error> {
    if inserted.insert_of(id).is_some() {
        inserted.delete(id)?;
    } else if row.is_none() {
        return Err(Error::NoSuchRow(coscan_pdt::Error::NoSuchInsert(id)));
    }
    match row {
        Some(row) => Ok(inserted.insert(Insert::new(id, Place::Tail, row))?),
        None => Ok(()),
    }
}
