//! Reasons for which the log refuses something.

use std::io;
use std::sync::Arc;

use crate::lsn::Lsn;

/// The reason for which the log cannot be opened, read, written or cut.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The disk failed.
    #[error("cannot {action} {path}: {source}. Check the disk, its free space and permissions")]
    Io {
        /// The operation as a verb, such as "write".
        action: &'static str,
        /// The file or directory, relative to the root of the disk.
        path: String,
        /// The reason that the disk gave.
        source: Arc<io::Error>,
    },
    /// An earlier write or sync failed, so that nobody knows what the disk has. Opening finds out.
    #[error("the log takes no more records since it failed ({cause}): open the database again")]
    Poisoned {
        /// The text of the first error.
        cause: String,
    },
    /// The log was closed by somebody who shares it.
    #[error("the log is closed: open the database again")]
    Closed,
    /// Bytes that were durable are damaged or missing.
    #[error(
        "{path} is damaged at byte {offset}, where {lsn} should be: {reason}. Restore this file from a backup, or the \
         database from a backup or replica"
    )]
    Corrupt {
        /// The segment, relative to the root of the disk.
        path: String,
        /// The place in the segment, in bytes from its beginning.
        offset: u64,
        /// The record that should be there.
        lsn: Lsn,
        /// The way in which the damage was told from a torn write.
        reason: String,
    },
    /// Another version of this crate wrote the segment.
    #[error("{path} has format {version}: open it with the version of coscan that wrote it")]
    UnknownFormat {
        /// The segment, relative to the root of the disk.
        path: String,
        /// The number of the format.
        version: u32,
    },
    /// Another process, or another [`Log`](crate::Log) of this one, has the log open.
    #[error("{path} is locked: stop the other process that has this database open")]
    Locked {
        /// The file that is locked, relative to the root of the disk.
        path: String,
    },
    /// The record is larger than a record may be.
    #[error("a record of {bytes} bytes is larger than {max}: write it as several records")]
    RecordTooLarge {
        /// The size of the payload.
        bytes: usize,
        /// The largest size of a payload.
        max: usize,
    },
    /// Replay was asked to begin where the log has no record.
    #[error(
        "the log cannot be replayed from {from}: it has {first} to {last}. A part of it is lost; restore its \
         directory from a backup"
    )]
    OutOfRange {
        /// The first record that was asked for.
        from: Lsn,
        /// The first record that the log has.
        first: Lsn,
        /// The last record that the log has.
        last: Lsn,
    },
    /// Somebody waits for a record that nobody submitted.
    #[error(
        "{lsn} was not submitted: the last one was {last}. Wait for a number that `submit` gave"
    )]
    NotSubmitted {
        /// The record that is waited for.
        lsn: Lsn,
        /// The last record that was submitted.
        last: Lsn,
    },
}

impl LogError {
    /// Makes an error of the disk one of the log.
    pub(crate) fn io(action: &'static str, path: &str, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source: Arc::new(source) }
    }
}
