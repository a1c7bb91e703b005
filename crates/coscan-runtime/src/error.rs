//! The reasons why a scan cannot start or continue.

use std::time::Duration;

use arrow_schema::DataType;
use coscan_core::{ChunkIndex, StartScanError};
use coscan_storage::table::{DecodeError, ReadError, TableError};

/// The reason why a scan cannot start or continue. It can be cloned, so that all workers of a scan can be told.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The scan asks for something that the table or the pool cannot give.
    #[error(transparent)]
    Start(#[from] StartScanError),
    /// A column index beyond the schema.
    #[error("the table has {columns} columns, there is no column {column} (they count from 0)")]
    UnknownColumn {
        /// The index asked for.
        column: usize,
        /// The number of columns.
        columns: usize,
    },
    /// Ranges of rows that do not ascend, or overlap.
    #[error(
        "rows {start}..{end} are asked for after rows up to {before}: give ranges of rows from first to last that do not \
         overlap"
    )]
    RowsOutOfOrder {
        /// The first row of the range.
        start: u64,
        /// The row after its last.
        end: u64,
        /// The row after the last of the ranges before it.
        before: u64,
    },
    /// There are columns for another number of tables than the joint table has.
    #[error("columns are asked for of {columns} tables, but the joint table has {tables}")]
    JointColumns {
        /// The number of tables for which there are columns.
        columns: usize,
        /// The number of tables of the joint table.
        tables: usize,
    },
    /// A joint chunk that the joint table does not have.
    #[error("the joint table has {chunks} chunks, there is no chunk {chunk} (they count from 0)")]
    UnknownJointChunk {
        /// The joint chunk asked for.
        chunk: usize,
        /// The number of joint chunks.
        chunks: usize,
    },
    /// Keys of another type than the column that they are looked up in.
    #[error("keys of type {keys} are looked up in a column of type {column}: cast them first")]
    KeyType {
        /// The type of the keys.
        keys: DataType,
        /// The type of the column.
        column: DataType,
    },
    /// A page could not be read, even when retried.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A store did not answer in time, even when asked again.
    #[error(
        "the store did not answer within {timeout:?}, several times; see that it is up, or allow reads more time"
    )]
    ReadTimeout {
        /// The time limit of one attempt.
        timeout: Duration,
    },
    /// A store panicked while it read, even when asked again.
    #[error(
        "a store panicked while it read a page; this is a bug in the store or in coscan, please report it"
    )]
    ReadPanicked,
    /// The tokio runtime that loads run on is gone.
    #[error(
        "the tokio runtime on which the buffer manager reads has shut down; make the manager on a runtime that \
         outlives its scans"
    )]
    ShutDown,
    /// A page was read but cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A column that is declared without NULLs has some.
    #[error(
        "column {column} is declared NOT NULL, but contains NULLs; declare it so that it may, or repair the files"
    )]
    NullsDeclaredAway {
        /// Its name.
        column: String,
    },
    /// A changed value does not have the type of its column.
    #[error(
        "the changes of the table do not fit its columns ({reason}); restore the table from a backup"
    )]
    ChangesNotMerged {
        /// The reason.
        reason: String,
    },
    /// Queries hold so much memory that nothing could be read or decoded.
    #[error(
        "out of memory: {needed_bytes} bytes are needed for a chunk, but of the {budget_bytes} bytes of the \
         budget queries hold {held_bytes}; give coscan more memory, or let fewer queries run at once"
    )]
    Exhausted {
        /// The bytes needed for reading or decoding.
        needed_bytes: u64,
        /// The budget.
        budget_bytes: u64,
        /// Bytes that queries and their decoded columns hold.
        held_bytes: u64,
    },
    /// The buffer manager has panicked. It runs no scan any more.
    #[error(
        "the buffer manager has panicked and stopped; make a new one and register the tables with it. This is a bug in \
         coscan: please report it with what was printed when it panicked"
    )]
    Broken,
    /// The scan was cancelled.
    #[error("the scan was cancelled")]
    Cancelled,
}

impl ScanError {
    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Read(error) => error.is_retryable(),
            Self::ReadTimeout { .. } | Self::ReadPanicked => true,
            _ => false,
        }
    }
}

impl ScanError {
    /// Whether the store gets too many requests, so that a retry may succeed, but not soon.
    pub(crate) fn is_throttling(&self) -> bool {
        matches!(self, Self::Read(error) if error.is_throttling())
    }
}

/// The reason why a scan cannot have more chunks.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct ExtendError {
    /// The reason.
    #[source]
    pub error: ScanError,
    /// The chunks that were not added, in ascending order.
    pub left: Vec<ChunkIndex>,
}

/// The reason why tables cannot be scanned together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JointTableError {
    /// No table was given.
    #[error("a joint table needs at least one table")]
    NoTables,
    /// A joint chunk does not have one range of rows for each table.
    #[error("joint chunk {chunk} has {ranges} ranges of rows, but there are {tables} tables")]
    RangeCount {
        /// The joint chunk.
        chunk: usize,
        /// The number of its ranges.
        ranges: usize,
        /// The number of tables.
        tables: usize,
    },
    /// Rows that a table does not have, or that another joint chunk has, too.
    #[error(
        "joint chunk {chunk} has rows {start}..{end} of table {table}, which has {rows} rows, after rows up to {before}: \
         give ranges of its rows from first to last that do not overlap"
    )]
    Rows {
        /// The joint chunk.
        chunk: usize,
        /// The position of the table.
        table: usize,
        /// The first row of the range.
        start: u64,
        /// The row after its last.
        end: u64,
        /// The row after the last of the joint chunks before.
        before: u64,
        /// The rows of the table.
        rows: u64,
    },
    /// A file is listed twice: its pages could not be told apart.
    #[error(
        "file {file} is listed twice by the tables of a joint table: scan a table that is joined with itself twice"
    )]
    FileTwice {
        /// Its name.
        file: String,
    },
}

/// The reason why files cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file cannot be read, or is not sound Parquet.
    #[error(transparent)]
    File(TableError),
    /// There is no memory for a footer.
    #[error(transparent)]
    Memory(#[from] ScanError),
}

impl From<TableError> for OpenError {
    fn from(error: TableError) -> Self {
        let exhausted = match &error {
            TableError::Read(ReadError::Refused { source, .. }) => source.downcast_ref(),
            _ => None,
        };
        match exhausted {
            Some(error @ ScanError::Exhausted { .. }) => Self::Memory(error.clone()),
            _ => Self::File(error),
        }
    }
}
