//! What can go wrong with a table, each with what to do about it. All are `Clone`, so that everyone who waits for the
//! same page can be told.

use std::sync::Arc;

use coscan_core::ChunkIndex;

use crate::stores::error_text;

/// Why a table cannot be opened or its statistics not be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TableError {
    /// No file was given.
    #[error("a table needs at least one Parquet file: name a path or pattern that matches some")]
    NoFiles,
    /// A file stands in the list more than once.
    #[error(
        "{file} is listed twice, so its rows would be there twice; list each file of a table once"
    )]
    ListedTwice {
        /// The file.
        file: Arc<str>,
    },
    /// The file is something else.
    #[error("{file} is not a Parquet file: {reason}; name only Parquet files")]
    NotParquet {
        /// The file.
        file: Arc<str>,
        /// What gives it away.
        reason: String,
    },
    /// The file began as Parquet but its footer makes no sense.
    #[error("{file} is damaged: {reason}; write or copy it again")]
    Corrupt {
        /// The file.
        file: Arc<str>,
        /// What makes no sense.
        reason: String,
    },
    /// The footer is encrypted.
    #[error("{file} is encrypted, which coscan cannot read; write it without encryption")]
    Encrypted {
        /// The file.
        file: Arc<str>,
    },
    /// The file is sound but uses something that coscan does not know.
    #[error("{file} cannot be read by coscan: {reason}")]
    Unsupported {
        /// The file.
        file: Arc<str>,
        /// What it uses.
        reason: String,
    },
    /// Two files have a column of the same name whose types have nothing in common.
    #[error(
        "{first_file} and {second_file} cannot be one table: column `{column}` is {first_type} in the first and \
         {second_type} in the second, and no type holds the values of both; write one file again with the type of the \
         other, or declare the column's type"
    )]
    SchemaMismatch {
        /// One of the files.
        first_file: Arc<str>,
        /// The file that comes after it.
        second_file: Arc<str>,
        /// The column in which they differ.
        column: String,
        /// Its type in the first file.
        first_type: String,
        /// Its type in the second file.
        second_type: String,
    },
    /// A file has a column with a type that is not made into the declared one.
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
    /// A file lacks a column that was declared to have no nulls.
    #[error("{file} lacks column `{column}`, which is declared NOT NULL; allow it to be NULL")]
    MissingColumn {
        /// The file.
        file: Arc<str>,
        /// The column.
        column: String,
    },
    /// A file cannot be read at all.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a part of a file cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not the one that the table was opened on.
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
    /// The store sent fewer bytes than asked for.
    #[error(
        "{file} ended early: {expected_bytes} bytes at offset {offset} were asked for and {actual_bytes} came; \
         try again, and if it stays so copy the file again"
    )]
    Truncated {
        /// The file.
        file: Arc<str>,
        /// Where the read began, in bytes.
        offset: u64,
        /// How many bytes were asked for.
        expected_bytes: u64,
        /// How many came.
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
        /// The store's own words.
        source: Arc<object_store::Error>,
    },
}

impl ReadError {
    /// Whether the same read may succeed if tried again. `object_store` has retried what it knows to be transient
    /// already.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Changed { .. } | Self::Missing { .. } => false,
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

/// Why a column of a chunk cannot be decoded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not what the footer promises.
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
        /// What the decoder found.
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
        /// Which value does not fit.
        reason: String,
    },
    /// The caller asked for rows that the chunk does not have, or not in order.
    #[error(
        "rows {start}..{end} cannot be selected from chunk {chunk} of {rows} rows: ranges ascend and stay inside"
    )]
    InvalidSelection {
        /// The chunk.
        chunk: ChunkIndex,
        /// Its rows.
        rows: u64,
        /// First row of the bad range.
        start: u64,
        /// End of the bad range.
        end: u64,
    },
}
