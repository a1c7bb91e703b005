//! Reasons for which an operation on a database is refused.

use std::sync::Arc;

/// The reason for which an operation is refused. The database then stays as it was.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A transaction that committed first wrote the same row.
    #[error(
        "another transaction changed a row of table {table} that this one changes, and committed first: run this one again"
    )]
    Conflict {
        /// The table.
        table: Arc<str>,
        /// The last commit that the transaction did not see. A transaction that begins when it is durable does.
        after: coscan_wal::Lsn,
    },
    /// The table was dropped, or created later.
    #[error(
        "the table is not in the snapshot of the transaction: it was dropped, or created after the transaction began; end \
         the transaction and look again"
    )]
    NoSuchTable,
    /// There is a table of this name.
    #[error("table {0} exists already: drop it first, or choose another name")]
    TableExists(Arc<str>),
    /// Another transaction deleted the row, or it never existed.
    #[error("a row to be changed does not exist in the snapshot of the transaction: {0}")]
    NoSuchRow(#[from] coscan_pdt::Error),
    /// The changes do not fit into a record of the log.
    #[error(
        "the changes of the transaction take {bytes} bytes, and may take 1 GiB: change fewer rows at once, or insert them with \
         one statement, which writes a file"
    )]
    TooLarge {
        /// The size of the record, in bytes.
        bytes: usize,
    },
    /// The log has failed, or cannot be opened.
    #[error(transparent)]
    Log(#[from] coscan_wal::LogError),
    /// The log has a record that this version of coscan does not know, or that does not follow those before it.
    #[error(
        "the record {lsn} of the log cannot be read: open the database with the version of coscan that wrote it"
    )]
    UnknownRecord {
        /// The record.
        lsn: coscan_wal::Lsn,
    },
    /// The state of the database, without which its log is of no use, is damaged.
    #[error("{path} is damaged: restore the database from a backup")]
    DamagedState {
        /// The file, relative to the root of the disk.
        path: String,
    },
    /// The disk refuses something with the files of states.
    #[error("{path} {reason}. Check the disk, and the rights on the directory")]
    StateFile {
        /// The file, relative to the root of the disk.
        path: String,
        /// What the disk refuses, and why.
        reason: String,
    },
    /// The state of the database cannot be written to a file. The log stays as it was.
    #[error(
        "cannot write {path}: {reason}. Nothing is lost, but the log grows: check the disk and its free space"
    )]
    WriteState {
        /// The file, relative to the root of the disk.
        path: String,
        /// The reason that the disk gave.
        reason: String,
    },
    /// The new file of a checkpoint has not as many rows as those that it replaces.
    #[error("a checkpoint has written {written} rows instead of {expected}: nothing was replaced")]
    WrongRowCount {
        /// The number of rows of the new file.
        written: u64,
        /// The number of rows that it should have.
        expected: u64,
    },
    /// The transaction of a statement has ended before the statement.
    #[error(
        "the transaction has ended, or another statement of its session has changed it meanwhile: run this one again"
    )]
    Ended,
    /// The file does not belong to the table in the snapshot of the transaction.
    #[error("the table has no such file in the snapshot of the transaction")]
    NoSuchFile,
}
