//! Changes that nobody else sees yet.

use std::sync::Arc;

use crate::changes::FileChanges;
use crate::error::Error;
use crate::ids::{InsertId, RowId, Sid};
use crate::insert::Insert;
use crate::write_set::WriteSet;

/// The changes of a transaction in one file: a version over its snapshot, and the rows that differ.
///
/// It reads its own version. At its commit it is [rebased](Self::rebased) onto the latest version of the file, and its
/// version becomes the one that all see. Snapshot isolation: the first of two transactions that wrote the same row
/// commits, the other fails `[CS11 §2.7]`.
#[derive(Clone, Debug)]
pub struct Transaction<V: Clone, K: Ord + Clone = ()> {
    snapshot: FileChanges<V, K>,
    changes: FileChanges<V, K>,
    writes: WriteSet,
}

impl<V: Clone, K: Ord + Clone> Transaction<V, K> {
    /// A transaction that has changed nothing yet, on a version that it goes on to see.
    #[must_use]
    pub fn new(snapshot: &FileChanges<V, K>) -> Self {
        let (snapshot, changes) = (snapshot.clone(), snapshot.clone());
        Self { snapshot, changes, writes: WriteSet::default() }
    }

    /// The version that it was started on, or rebased onto.
    #[must_use]
    pub fn snapshot(&self) -> &FileChanges<V, K> {
        &self.snapshot
    }

    /// The version that the transaction sees: the snapshot with its own changes.
    #[must_use]
    pub fn changes(&self) -> &FileChanges<V, K> {
        &self.changes
    }

    /// The rows that it wrote.
    #[must_use]
    pub fn writes(&self) -> &WriteSet {
        &self.writes
    }

    /// The version to commit, and the rows written, which later commits of others are checked against.
    #[must_use]
    pub fn into_parts(self) -> (FileChanges<V, K>, WriteSet) {
        (self.changes, self.writes)
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// As [`FileChanges::insert`].
    pub fn insert(&mut self, insert: Insert<V, K>) -> Result<(), Error> {
        let id = insert.id();
        self.changes.insert(insert)?;
        self.writes.add(id);
        Ok(())
    }

    /// Gives a cell of a row another value.
    ///
    /// # Errors
    /// As [`FileChanges::patch`].
    pub fn patch(&mut self, row: impl Into<RowId>, column: u32, value: V) -> Result<(), Error> {
        let row = row.into();
        self.changes.patch(row, column, value)?;
        self.writes.add(row);
        Ok(())
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// As [`FileChanges::delete`].
    pub fn delete(&mut self, row: impl Into<RowId>) -> Result<(), Error> {
        let row = row.into();
        self.changes.delete(row)?;
        self.writes.add(row);
        Ok(())
    }

    /// Counts a row as written without changing it, so that no other transaction can write it and commit first.
    ///
    /// # Errors
    /// [`Error::RowOutOfRange`], [`Error::RowDeleted`] or [`Error::NoSuchInsert`] if the transaction does not see the row.
    pub fn mark_written(&mut self, row: impl Into<RowId>) -> Result<(), Error> {
        let row = row.into();
        self.changes.check_row(row)?;
        self.writes.add(row);
        Ok(())
    }

    /// Changes rows of these names.
    pub(crate) fn change(
        &mut self,
        writes: WriteSet,
        change: impl FnOnce(&mut FileChanges<V, K>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        change(&mut self.changes)?;
        for row in writes.iter() {
            self.writes.add(row);
        }
        Ok(())
    }

    /// The transaction without the tail, and the tail as one of its own, as [`FileChanges::split_tail`].
    #[must_use]
    pub fn split_tail(&self) -> (Self, Self) {
        let (snapshot, snapshot_tail) = self.snapshot.split_tail();
        let (changes, changes_tail) = self.changes.split_tail();
        let (mut writes, mut tail_writes) = (WriteSet::default(), WriteSet::default());
        for row in self.writes.iter() {
            let is_of_file = match row {
                RowId::Stable(_) => true,
                RowId::Insert(id) => snapshot.is_visible(id) || changes.is_visible(id),
            };
            if is_of_file {
                writes.add(row)
            } else {
                tail_writes.add(row)
            };
        }
        (
            Self { snapshot, changes, writes },
            Self { snapshot: snapshot_tail, changes: changes_tail, writes: tail_writes },
        )
    }

    /// The same transaction on a later version of the file. `since` are the rows written by each commit that is in `onto`
    /// and not in the snapshot.
    ///
    /// No position is computed anew: as nobody else wrote the rows that this one wrote, they are made what they are here.
    /// Time grows with the rows written. If nothing was committed in between, nothing is copied.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a commit since wrote a row that this one wrote. If `since` is not complete, what the rows
    /// have become may be an error of another kind, or may be lost.
    pub fn rebased<'a>(
        &self,
        onto: &FileChanges<V, K>,
        since: impl IntoIterator<Item = &'a WriteSet>,
    ) -> Result<Self, Error> {
        let conflict = since.into_iter().find_map(|other| self.writes.conflict(other));
        if let Some(row) = conflict {
            return Err(Error::Conflict(row));
        }
        let mut rebased = Self { writes: self.writes.clone(), ..Self::new(onto) };
        if onto.is_same_version(&self.snapshot) {
            rebased.changes = self.changes.clone();
            return Ok(rebased);
        }
        for row in self.writes.iter() {
            match row {
                RowId::Stable(sid) => self.carry_row(sid, &mut rebased.changes)?,
                RowId::Insert(id) => self.carry_insert(id, &mut rebased.changes)?,
            }
        }
        Ok(rebased)
    }

    /// Makes a stable row of another version what it is here.
    fn carry_row(&self, sid: Sid, onto: &mut FileChanges<V, K>) -> Result<(), Error> {
        if self.changes.is_deleted(sid) {
            return onto.delete(sid);
        }
        let patches = self.changes.row_patches(sid);
        onto.replace_patches(sid, patches.map(|(column, value)| (column, value.clone())))
    }

    /// Makes an insert of another version what it is here.
    fn carry_insert(&self, id: InsertId, onto: &mut FileChanges<V, K>) -> Result<(), Error> {
        let is_new = self.snapshot.insert_of(id).is_none();
        match (self.changes.insert_of(id), is_new) {
            (Some(insert), true) => onto.insert(insert.clone()),
            (Some(insert), false) => onto.replace_insert(id, Arc::clone(&insert.row)),
            (None, true) => Ok(()),
            (None, false) => onto.delete(id),
        }
    }
}
