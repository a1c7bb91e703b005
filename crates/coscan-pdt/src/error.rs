//! Reasons for which a change is refused.

use crate::ids::{InsertId, RowId, Sid};

/// The reason for which a change is refused. The version then stays as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has no such row.
    #[error(
        "{row} is not in a file of {row_count} rows: name a row by its position, counted from 0"
    )]
    RowOutOfRange {
        /// The row that was named.
        row: Sid,
        /// The number of rows of the file.
        row_count: u64,
    },
    /// The row was deleted in this version.
    #[error("{0} was deleted: read the version again that you change")]
    RowDeleted(Sid),
    /// There never was such an insert in this version, or it was deleted.
    #[error("{0} does not exist or was deleted: read the version again that you change")]
    NoSuchInsert(InsertId),
    /// An insert of this version has the same id.
    #[error("{0} exists already: each insert needs an id of its own")]
    InsertExists(InsertId),
    /// The inserted row has fewer columns.
    #[error("{id} has {columns} columns, and no column {column}: count columns from 0")]
    NoSuchColumn {
        /// The insert.
        id: InsertId,
        /// The column that was named.
        column: u32,
        /// The number of columns of the inserted row.
        columns: usize,
    },
    /// Deleted rows of a file were not listed in ascending order, or one of them twice.
    #[error("{0} is listed after a row that is not before it: sort the deleted rows, each once")]
    NotAscending(Sid),
    /// A transaction that committed first wrote the same row. `[CS11 §2.7]`
    #[error("another transaction wrote {0} first: run this one again")]
    Conflict(RowId),
    /// Changes of another file, or of a version before the checkpoint, cannot be mapped to its file.
    #[error(
        "these changes do not follow the version of the checkpoint: map a later version of its file"
    )]
    NotLater,
}
