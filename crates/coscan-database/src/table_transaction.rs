//! The changes of a transaction in one table.

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_pdt::{FileChanges, Insert, InsertId, Place, RowId, Transaction, WriteSet};
use coscan_wal::Lsn;

use crate::error::Error;
use crate::rewrite::TableRewrite;
use crate::table::{DataFile, FileId, TableRowId};
use crate::table_writes::TableWrites;
use crate::version::{ChangedFile, TableVersion};

/// The changes of a transaction in a table that nobody else sees yet.
#[derive(Clone, Debug)]
pub(crate) struct TableTransaction<V: Clone> {
    snapshot: TableVersion<V>,
    /// The last commit that the snapshot has.
    seen: Lsn,
    /// The changes in files, those that it added among them.
    files: BTreeMap<FileId, Transaction<V>>,
    inserted: Transaction<V>,
    /// The files that it added, in order.
    added: Vec<(FileId, DataFile)>,
}

impl<V: Clone> TableTransaction<V> {
    pub(crate) fn new(snapshot: TableVersion<V>, seen: Lsn) -> Self {
        let inserted = Transaction::new(snapshot.inserted());
        Self { snapshot, seen, files: BTreeMap::new(), inserted, added: Vec::new() }
    }

    /// The last commit that its snapshot has.
    pub(crate) fn seen(&self) -> Lsn {
        self.seen
    }

    /// The same changes on the version that a checkpoint has left at commit `lsn`. `since` are the rows that each commit wrote
    /// after the snapshot and before the checkpoint. `None` if one of them wrote a row that this transaction wrote.
    pub(crate) fn after_rewrite(
        &self,
        rewrite: &TableRewrite<V>,
        lsn: Lsn,
        since: &[&TableWrites],
    ) -> Result<Option<Self>, Error>
    where
        V: PartialEq,
    {
        let mut after = Self::new(rewrite.after.clone(), lsn);
        after.added.clone_from(&self.added);
        for (&id, changes) in &self.files {
            if self.is_added(id) {
                after.files.insert(id, changes.clone());
            } else if let Some(file) = rewrite.after.file(id) {
                let others = since.iter().filter_map(|writes| writes.files.get(&id));
                let Some(rebased) = rebased(changes, &file.changes, others)? else {
                    return Ok(None);
                };
                after.files.insert(id, rebased);
            }
        }
        let others = || since.iter().map(|writes| &writes.inserted);
        if !rewrite.has_inserted() {
            let Some(inserted) = rebased(&self.inserted, rewrite.after.inserted(), others())?
            else {
                return Ok(None);
            };
            after.inserted = inserted;
        }
        for file in &rewrite.files {
            let mut changes = Transaction::new(&file.changes);
            for source in &file.sources {
                let old = match source.id {
                    Some(id) => {
                        let Some(old) = self.files.get(&id) else { continue };
                        let others = since.iter().filter_map(|writes| writes.files.get(&id));
                        rebased(old, &source.last, others)?
                    }
                    None => rebased(&self.inserted, &source.last, others())?,
                };
                let Some(old) = old else { return Ok(None) };
                source.map.carry_transaction(&old, &mut changes)?;
            }
            if file.has_inserted() {
                let (stored, inserted) = changes.split_tail();
                (changes, after.inserted) = (stored, inserted);
            }
            if let Some(id) = file.id.filter(|_| !changes.writes().is_empty()) {
                after.files.insert(id, changes);
            }
        }
        Ok(Some(after))
    }

    fn is_added(&self, id: FileId) -> bool {
        self.added.iter().any(|(added, _)| *added == id)
    }

    /// The table as the transaction sees it.
    pub(crate) fn version(&self) -> TableVersion<V> {
        let changed = |file: &ChangedFile<V>| match self.files.get(&file.id) {
            Some(changes) => {
                ChangedFile { changes: Arc::new(changes.changes().clone()), ..file.clone() }
            }
            None => file.clone(),
        };
        let files = match self.files.is_empty() {
            true => Arc::clone(self.snapshot.shared_files()),
            false => {
                let stored = self.snapshot.files().iter().map(changed);
                stored.chain(self.added_files()).collect()
            }
        };
        TableVersion::new(files, Arc::new(self.inserted.changes().clone()))
    }

    /// The files that it added, with its changes of their rows.
    fn added_files(&self) -> impl Iterator<Item = ChangedFile<V>> {
        self.added.iter().map(|(id, file)| {
            let changes = Arc::new(self.files[id].changes().clone());
            ChangedFile { id: *id, file: file.clone(), changes }
        })
    }

    pub(crate) fn add_file(&mut self, id: FileId, file: DataFile) {
        self.files.insert(id, Transaction::new(&FileChanges::new(file.rows)));
        self.added.push((id, file));
    }

    pub(crate) fn insert(&mut self, id: InsertId, row: Arc<[V]>) -> Result<(), Error> {
        Ok(self.inserted.insert(Insert::new(id, Place::Tail, row))?)
    }

    pub(crate) fn delete(&mut self, row: TableRowId) -> Result<(), Error> {
        let (changes, row) = self.changes_of(row)?;
        Ok(changes.delete(row)?)
    }

    /// Gives cells of a row other values. Without any, the row still counts as written.
    pub(crate) fn update(
        &mut self,
        row: TableRowId,
        cells: impl IntoIterator<Item = (u32, V)>,
    ) -> Result<(), Error> {
        let (changes, row) = self.changes_of(row)?;
        changes.mark_written(row)?;
        for (column, value) in cells {
            changes.patch(row, column, value)?;
        }
        Ok(())
    }

    fn changes_of(&mut self, row: TableRowId) -> Result<(&mut Transaction<V>, RowId), Error> {
        let (file, sid) = match row {
            TableRowId::Inserted(id) => return Ok((&mut self.inserted, id.into())),
            TableRowId::Stored(file, sid) => (file, sid),
        };
        if !self.files.contains_key(&file) {
            let version = self.snapshot.file(file).ok_or(Error::NoSuchFile)?;
            self.files.insert(file, Transaction::new(&version.changes));
        }
        let changes = self.files.get_mut(&file).ok_or(Error::NoSuchFile)?;
        Ok((changes, sid.into()))
    }

    /// The version to commit after `latest`, and the rows written. `since` are those that each commit wrote that is in
    /// `latest` and not in the snapshot. `None` if a commit since wrote a row that this transaction wrote.
    pub(crate) fn applied_to(
        &self,
        latest: &TableVersion<V>,
        since: &[&TableWrites],
    ) -> Result<Option<(TableVersion<V>, TableWrites)>, Error> {
        let mut writes = TableWrites::default();
        if self.files.is_empty() {
            return self.inserted_into(latest, Arc::clone(latest.shared_files()), since, writes);
        }
        let mut files = latest.files().to_vec();
        for (&id, changes) in &self.files {
            if self.is_added(id) {
                continue;
            }
            let others = since.iter().filter_map(|writes| writes.files.get(&id));
            let file = files.iter_mut().find(|file| file.id == id).ok_or(Error::NoSuchFile)?;
            let Some(rebased) = rebased(changes, &file.changes, others)? else { return Ok(None) };
            let (changes, written) = rebased.into_parts();
            file.changes = Arc::new(changes);
            writes.files.insert(id, written);
        }
        files.extend(self.added_files());
        self.inserted_into(latest, files.into(), since, writes)
    }

    /// As [`Self::applied_to`], for the inserted rows: the files are changed already.
    fn inserted_into(
        &self,
        latest: &TableVersion<V>,
        files: Arc<[ChangedFile<V>]>,
        since: &[&TableWrites],
        writes: TableWrites,
    ) -> Result<Option<(TableVersion<V>, TableWrites)>, Error> {
        if self.inserted.writes().is_empty() {
            let inserted = Arc::clone(latest.inserted());
            return Ok(Some((TableVersion::new(files, inserted), writes)));
        }
        let others = since.iter().map(|writes| &writes.inserted);
        let Some(inserted) = rebased(&self.inserted, latest.inserted(), others)? else {
            return Ok(None);
        };
        let (inserted, written) = inserted.into_parts();
        let writes = TableWrites { inserted: written, ..writes };
        Ok(Some((TableVersion::new(files, Arc::new(inserted)), writes)))
    }

    /// The changes in files, those that it added among them.
    pub(crate) fn files(&self) -> &BTreeMap<FileId, Transaction<V>> {
        &self.files
    }

    /// The changes of the rows that no file has.
    pub(crate) fn inserted(&self) -> &Transaction<V> {
        &self.inserted
    }

    /// The files that it added, in order.
    pub(crate) fn added(&self) -> &[(FileId, DataFile)] {
        &self.added
    }

    /// The number of rows that it wrote.
    pub(crate) fn rows_written(&self) -> u64 {
        self.files.values().chain([&self.inserted]).map(|changes| changes.writes().len()).sum()
    }

    /// Whether nothing was changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.values().chain([&self.inserted]).all(|changes| changes.writes().is_empty())
            && self.added.is_empty()
    }
}

/// The same changes on a later version; `None` if they conflict with others.
fn rebased<'a, V: Clone>(
    changes: &Transaction<V>,
    latest: &FileChanges<V>,
    since: impl IntoIterator<Item = &'a WriteSet>,
) -> Result<Option<Transaction<V>>, Error> {
    match changes.rebased(latest, since) {
        Ok(rebased) => Ok(Some(rebased)),
        Err(coscan_pdt::Error::Conflict(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
