//! A table at one moment.

use std::sync::Arc;

use coscan_pdt::{FileChanges, Rid, RowId, Sid};

use crate::error::Error;
use crate::table::{DataFile, FileId, TableRowId};

/// A file of a table, and the changes of its rows.
#[derive(Clone, Debug)]
pub struct ChangedFile<V: Clone> {
    /// Its number.
    pub id: FileId,
    /// The file.
    pub file: DataFile,
    /// The changes.
    pub changes: Arc<FileChanges<V>>,
}

/// A table at one moment: files in a fixed order with their changes, and the rows that no file has.
///
/// Rows are numbered: those of the files, one file after the other, deleted or not, and then the inserted rows. Numbers
/// differ between versions; the name of a row is a [`TableRowId`].
#[derive(Clone, Debug)]
pub struct TableVersion<V: Clone> {
    files: Arc<[ChangedFile<V>]>,
    inserted: Arc<FileChanges<V>>,
}

impl<V: Clone> TableVersion<V> {
    /// A table of these files.
    pub(crate) fn new(files: Arc<[ChangedFile<V>]>, inserted: Arc<FileChanges<V>>) -> Self {
        Self { files, inserted }
    }

    /// The files, in order.
    #[must_use]
    pub fn files(&self) -> &[ChangedFile<V>] {
        &self.files
    }

    /// The same list of files in all versions that do not differ in files or their changes.
    pub(crate) fn shared_files(&self) -> &Arc<[ChangedFile<V>]> {
        &self.files
    }

    /// Whether its rows are those of its files, as the files have them.
    #[must_use]
    pub fn is_in_files(&self) -> bool {
        let is_changed = |file: &ChangedFile<V>| {
            let counts = file.changes.counts();
            counts.deleted + counts.patched + counts.inserted > 0
        };
        self.inserted.visible_rows() == 0 && !self.files.iter().any(is_changed)
    }

    /// Whether nothing was changed since one was made from the other. `false` says nothing.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.files, &other.files) && Arc::ptr_eq(&self.inserted, &other.inserted)
    }

    /// The rows that no file has, as the inserts of a file without rows.
    #[must_use]
    pub fn inserted(&self) -> &Arc<FileChanges<V>> {
        &self.inserted
    }

    /// The number of rows that have a number: those of files, deleted or not, and inserted ones.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        let stored = self.files.iter().map(|file| file.file.rows);
        stored.sum::<u64>() + self.inserted.visible_rows()
    }

    /// The number of rows that a query sees.
    #[must_use]
    pub fn visible_rows(&self) -> u64 {
        let stored = self.files.iter().map(|file| file.changes.visible_rows());
        stored.sum::<u64>() + self.inserted.visible_rows()
    }

    /// The name of the row with this number; `None` if there are fewer.
    #[must_use]
    pub fn row(&self, number: u64) -> Option<TableRowId> {
        let mut left = number;
        for file in &*self.files {
            if left < file.file.rows {
                return Some(TableRowId::Stored(file.id, Sid(left)));
            }
            left -= file.file.rows;
        }
        match self.inserted.row_at_rid(Rid(left))? {
            RowId::Insert(id) => Some(TableRowId::Inserted(id)),
            RowId::Stable(_) => None,
        }
    }

    /// A part of the table.
    ///
    /// # Errors
    /// [`Error::NoSuchFile`] if the table does not have one of its files.
    pub fn part(&self, part: &TablePart) -> Result<Self, Error> {
        let files = part.files.iter().map(|id| self.file(*id).cloned().ok_or(Error::NoSuchFile));
        let inserted = match part.inserted {
            true => Arc::clone(&self.inserted),
            false => Arc::new(FileChanges::new(0)),
        };
        Ok(Self { files: files.collect::<Result<_, _>>()?, inserted })
    }

    pub(crate) fn file(&self, id: FileId) -> Option<&ChangedFile<V>> {
        self.files.iter().find(|file| file.id == id)
    }
}

/// A part of a table: some of its files, one after the other, and then the rows that no file has, or not.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TablePart {
    /// The files.
    pub files: Vec<FileId>,
    /// Whether it has the rows that no file has.
    pub inserted: bool,
}

impl<V: Clone> Default for TableVersion<V> {
    fn default() -> Self {
        Self::new(Arc::default(), Arc::new(FileChanges::new(0)))
    }
}
