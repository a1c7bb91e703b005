//! Errors of tables, each with a remedy. All are `Clone`, so that all scans that wait for a page get its error.

use std::sync::Arc;

use coscan_core::ChunkIndex;

use crate::stores::{SLOW_DOWN, error_text};

/// The reason why a table cannot be opened or its statistics cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TableError {
    /// No file was given.
    #[error("a table needs at least one Parquet file: name a path or pattern that matches some")]
    NoFiles,
    /// A file is listed more than once.
    #[error(
        "{file} is listed twice, so its rows would count twice; list each file of a table once"
    )]
    ListedTwice {
        /// The file.
        file: Arc<str>,
    },
    /// The file is not Parquet.
    #[error("{file} is not a Parquet file: {reason}; name only Parquet files")]
    NotParquet {
        /// The file.
        file: Arc<str>,
        /// The evidence.
        reason: String,
    },
    /// The file is Parquet with a damaged footer, page index or statistics.
    #[error("{file} is damaged: {reason}; write or copy it again")]
    Corrupt {
        /// The file.
        file: Arc<str>,
        /// The damage.
        reason: String,
    },
    /// The footer is encrypted.
    #[error("{file} is encrypted, which coscan cannot read; write it without encryption")]
    Encrypted {
        /// The file.
        file: Arc<str>,
    },
    /// The file uses a feature that coscan does not support.
    #[error("{file} cannot be read by coscan: {reason}")]
    Unsupported {
        /// The file.
        file: Arc<str>,
        /// The feature.
        reason: String,
    },
    /// A column has no common type in two files.
    #[error(
        "{first_file} and {second_file} cannot be one table: column `{column}` is {first_type} in the first and \
         {second_type} in the second, and no type holds the values of both; write one file again with the type of the \
         other, or declare the column's type"
    )]
    SchemaMismatch {
        /// One of the files.
        first_file: Arc<str>,
        /// A file after it.
        second_file: Arc<str>,
        /// The column in which they differ.
        column: String,
        /// Its type in the first file.
        first_type: String,
        /// Its type in the second file.
        second_type: String,
    },
    /// A column of a file does not cast to its declared type.
    #[error(
        "column `{column}` of {file} is {file_type}, which cannot be read as {table_type}; declare it as {file_type}, or \
         leave the columns out of the declaration"
    )]
    CannotCast {
        /// The file.
        file: Arc<str>,
        /// The column.
        column: String,
        /// Its type in the file.
        file_type: String,
        /// The type that was declared.
        table_type: String,
    },
    /// A file lacks a column that is declared NOT NULL.
    #[error("{file} lacks column `{column}`, which is declared NOT NULL; allow it to be NULL")]
    MissingColumn {
        /// The file.
        file: Arc<str>,
        /// The column.
        column: String,
    },
    /// A row is deleted or changed that a file does not have.
    #[error(
        "row {row} of {file} is deleted or changed in this version of the table, but the file has only {rows} rows; the \
         file was replaced, or the list of changes is damaged"
    )]
    NoSuchRow {
        /// The file.
        file: Arc<str>,
        /// The position of the row.
        row: u64,
        /// The number of rows of the file.
        rows: u64,
    },
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The reason why a part of a file cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The file has changed since the table was opened.
    #[error("{file} has changed since the table was opened; open the table again")]
    Changed {
        /// The file.
        file: Arc<str>,
    },
    /// The file is gone.
    #[error("{file} does not exist any more; open the table again")]
    Missing {
        /// The file.
        file: Arc<str>,
    },
    /// The store sent fewer bytes than requested.
    #[error(
        "{file} ended early: {expected_bytes} bytes at offset {offset} were asked for and {actual_bytes} came; \
         try again, and if it stays so copy the file again"
    )]
    Truncated {
        /// The file.
        file: Arc<str>,
        /// The start of the read, in bytes.
        offset: u64,
        /// The number of bytes requested.
        expected_bytes: u64,
        /// The number of bytes received.
        actual_bytes: u64,
    },
    /// The store failed.
    #[error(
        "cannot read {file}: {}; see that its store can be reached, then run the query again",
        error_text(.source)
    )]
    Store {
        /// The file.
        file: Arc<str>,
        /// The error of the store.
        source: Arc<object_store::Error>,
    },
    /// The reading program refused the read or gave up on it ([`MetadataReader`](super::MetadataReader)).
    #[error("cannot read {file}: {source}")]
    Refused {
        /// The file.
        file: Arc<str>,
        /// The reason.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl ReadError {
    /// Whether a retry of the same read may succeed. `object_store` has already retried errors that it knows to be
    /// transient.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Changed { .. } | Self::Missing { .. } | Self::Refused { .. } => false,
            Self::Truncated { .. } => true,
            Self::Store { source, .. } => {
                matches!(
                    **source,
                    object_store::Error::Generic { .. } | object_store::Error::JoinError { .. }
                )
            }
        }
    }
}

/// Texts in the errors of stores that get too many requests. Status and code are known only from the text.
const THROTTLED: [&str; 7] = [
    SLOW_DOWN,
    "429 Too Many Requests",
    "503 Service Unavailable",
    "SlowDown",
    "ServerBusy",
    "TooManyRequests",
    "ThrottlingException",
];

impl ReadError {
    /// Whether the store gets too many requests: a retry may succeed, but not soon.
    #[must_use]
    pub fn is_throttling(&self) -> bool {
        let Self::Store { source, .. } = self else { return false };
        let object_store::Error::Generic { source, .. } = &**source else { return false };
        let text = source.to_string();
        THROTTLED.iter().any(|said| text.contains(said))
    }
}

/// The reason why a column of a chunk cannot be decoded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes contradict the footer.
    #[error(
        "column `{column}` of {file} is damaged in chunk {chunk}: {reason}; write or copy the file again"
    )]
    Corrupt {
        /// The file.
        file: Arc<str>,
        /// The column.
        column: String,
        /// The chunk, counted within the file.
        chunk: ChunkIndex,
        /// The error of the decoder.
        reason: String,
    },
    /// A value does not fit in the type that the table declares.
    #[error(
        "column `{column}` of {file} cannot be read as {table_type}: {reason}; declare the type that the file has, or \
         write the file again"
    )]
    Cast {
        /// The file.
        file: Arc<str>,
        /// The column.
        column: String,
        /// The type that was declared.
        table_type: String,
        /// The value that does not fit.
        reason: String,
    },
    /// The selected rows are not in order, or not in the chunk.
    #[error(
        "rows {start}..{end} cannot be selected from chunk {chunk} of {rows} rows: ranges must ascend without overlap and stay inside"
    )]
    InvalidSelection {
        /// The chunk.
        chunk: ChunkIndex,
        /// Its rows.
        rows: u64,
        /// The first row of the bad range.
        start: u64,
        /// End of the bad range.
        end: u64,
    },
}
