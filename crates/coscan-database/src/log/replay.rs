//! Records as a database again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use coscan_pdt::{FileChanges, Insert, InsertId, Place, Sid};
use coscan_wal::Lsn;

use super::record::{Record, Replaced, StoredRow, StoredRows, TableRecord};
use crate::error::Error;
use crate::state::DatabaseVersion;
use crate::table::{DataFile, FileId, RetiredFile, Table, TableId};
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
    retired: Vec<RetiredFile>,
}

/// More rows than all files of a database ever have.
const ROWS_MAX: u64 = 1 << 62;

/// So many changed rows of a file are applied together.
const PENDING_MAX: usize = 1 << 18;

/// A file, and what its records say of its rows.
struct ReplayedFile<V: Clone> {
    id: FileId,
    file: DataFile,
    changes: FileChanges<V>,
    /// Rows that are not applied yet, as records came. In the order of rows that takes a fraction of the time, and none for a
    /// file that is replaced.
    pending: StoredRows<V>,
}

struct ReplayedTable<V: Clone> {
    table: Table,
    /// The files, in order.
    files: Vec<ReplayedFile<V>>,
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
            retired: Vec::new(),
        }
    }

    /// Goes on after a state, in which these were the numbers of the next table, file and inserted row.
    pub(crate) fn skip_to([next_table, next_file, next_insert]: [u64; 3]) -> Self {
        Self { next_table, next_file, next_insert, ..Self::new() }
    }

    /// Applies the next record, which has this number.
    ///
    /// # Errors
    /// If it does not follow those before it.
    pub(crate) fn apply(&mut self, lsn: Lsn, record: Record<V>) -> Result<(), Error> {
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
        record.changed.into_iter().try_for_each(|changes| self.apply_changes(lsn, changes))?;
        self.retired.retain(|file| !record.forgotten.contains(&file.id));
        Ok(())
    }

    /// Adds files that were retired before.
    pub(crate) fn retire(&mut self, files: impl IntoIterator<Item = RetiredFile>) {
        self.retired.extend(files);
    }

    /// The numbers of the next table, file and inserted row.
    pub(crate) fn next_numbers(&self) -> [u64; 3] {
        [self.next_table, self.next_file, self.next_insert]
    }

    /// Takes a new file.
    fn file(&mut self, id: FileId, file: DataFile) -> Result<ReplayedFile<V>, Error> {
        self.next_file = self.next_file.max(next(id.0)?);
        let rows = self.rows.checked_add(file.rows).filter(|rows| *rows < ROWS_MAX);
        self.rows = rows.ok_or(Error::NoSuchFile)?;
        if !self.files.insert(id) {
            return Err(Error::NoSuchFile);
        }
        let changes = FileChanges::new(file.rows);
        Ok(ReplayedFile { id, file, changes, pending: Vec::new() })
    }

    fn apply_changes(&mut self, lsn: Lsn, changes: TableRecord<V>) -> Result<(), Error> {
        let replaced = changes.replaced.into_iter().map(|Replaced { id, by }| {
            let by = by.map(|(id, file)| self.file(id, file)).transpose()?;
            Ok::<_, Error>((id, by))
        });
        let mut replaced: BTreeMap<_, _> = replaced.collect::<Result<_, _>>()?;
        let added = changes.added.into_iter().map(|(id, file)| self.file(id, file));
        let added: Vec<_> = added.collect::<Result<_, _>>()?;
        let table = self.tables.get_mut(&changes.table).ok_or(Error::NoSuchTable)?;
        if !replaced.is_empty() {
            let files = std::mem::take(&mut table.files).into_iter();
            let files = files.filter_map(|file| match replaced.remove(&file.id) {
                Some(by) => {
                    let (id, path, since) = (file.id, file.file.path, changes.retired_since);
                    self.retired.push(RetiredFile { id, path, since, lsn });
                    by
                }
                None => Some(file),
            });
            table.files = files.collect();
            if !replaced.is_empty() {
                return Err(Error::NoSuchFile);
            }
        }
        table.files.extend(added);
        for (id, rows) in changes.files {
            let file = table.files.iter_mut().rev().find(|file| file.id == id);
            let file = file.ok_or(Error::NoSuchFile)?;
            file.pending.extend(rows);
            if file.pending.len() >= PENDING_MAX {
                file.apply_pending()?;
            }
        }
        if !changes.folded.is_empty() {
            let is_folded = |insert: &Insert<V>| {
                let passed = changes.folded.partition_point(|run| run.end <= insert.id().0);
                changes.folded.get(passed).is_some_and(|run| run.contains(&insert.id().0))
            };
            let mut left = FileChanges::new(0);
            let kept = table.inserted.tail().filter(|insert| !is_folded(insert));
            kept.cloned().try_for_each(|insert| left.insert(insert))?;
            table.inserted = left;
        }
        for (id, row) in changes.inserted {
            self.next_insert = self.next_insert.max(next(id.0)?);
            apply_inserted(&mut table.inserted, id, row)?;
        }
        Ok(())
    }

    /// Applies what was kept of records to be applied together. Before that, the database is not as they say.
    ///
    /// # Errors
    /// If records are not of rows that their files have.
    pub(crate) fn apply_pending(&mut self) -> Result<(), Error> {
        let mut files = self.tables.values_mut().flat_map(|table| &mut table.files);
        files.try_for_each(ReplayedFile::apply_pending)
    }

    /// The database as it is now, after the record of this number, and the files that are retired.
    pub(crate) fn into_version(self, lsn: Lsn) -> (DatabaseVersion<V>, VecDeque<RetiredFile>) {
        let tables =
            self.tables.into_iter().map(|(id, ReplayedTable { table, files, inserted })| {
                let files = files.into_iter().map(|ReplayedFile { id, file, changes, .. }| {
                    ChangedFile { id, file, changes: Arc::new(changes) }
                });
                (id, (table, TableVersion::new(files.collect(), Arc::new(inserted))))
            });
        (DatabaseVersion { lsn, tables: Arc::new(tables.collect()) }, self.retired.into())
    }
}

impl<V: Clone> ReplayedFile<V> {
    /// Applies the rows that are pending. Of a row that is there several times, the last one counts.
    ///
    /// # Errors
    /// If the file does not have a row, or one was changed after it was deleted.
    fn apply_pending(&mut self) -> Result<(), Error> {
        self.pending.sort_by_key(|(sid, _)| *sid);
        let mut rows = std::mem::take(&mut self.pending).into_iter().peekable();
        while let Some((sid, row)) = rows.next() {
            match rows.peek() {
                Some((next, _)) if *next != sid => apply_stored(&mut self.changes, sid, row)?,
                None => apply_stored(&mut self.changes, sid, row)?,
                Some(_) if matches!(row, StoredRow::Patched(_)) => {}
                Some(_) => return Err(coscan_pdt::Error::RowDeleted(sid).into()),
            }
        }
        Ok(())
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
