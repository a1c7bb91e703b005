//! The names of tables, files and rows.

use std::sync::Arc;

use coscan_pdt::{InsertId, Sid};
use coscan_wal::Lsn;

/// A table. The number is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct TableId(pub u64);

/// A table, apart from its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its number.
    pub id: TableId,
    /// Its name. No two tables of a database have the same.
    pub name: Arc<str>,
    /// Its columns, in a form that only the user of the crate knows.
    pub definition: Arc<[u8]>,
}

/// A file of a table. No two files that were committed have the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct FileId(pub u64);

/// A file with rows of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    /// Its name within the database.
    pub path: Arc<str>,
    /// The number of its rows.
    pub rows: u64,
}

impl DataFile {
    /// A file of this name with this many rows.
    pub fn new(path: impl Into<Arc<str>>, rows: u64) -> Self {
        Self { path: path.into(), rows }
    }
}

/// A file that a checkpoint has replaced. Transactions that began before still read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetiredFile {
    /// Its number.
    pub id: FileId,
    /// Its name within the database.
    pub path: Arc<str>,
    /// When it was replaced, as the caller of the checkpoint counts time.
    pub since: u64,
    /// The commit that replaced it, if it was one since the database was opened: no earlier transaction is running then.
    pub(crate) lsn: Lsn,
}

/// The name of a row. It is the same in all versions until a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum TableRowId {
    /// A row of a file.
    Stored(FileId, Sid),
    /// A row that no file has.
    Inserted(InsertId),
}
