//! The errors of statements.

use std::fmt;

/// The kind of a failure. Each protocol has its own code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The statement cannot be parsed.
    Syntax,
    /// A table does not exist, or is hidden from the user.
    UnknownTable,
    /// A column does not exist.
    UnknownColumn,
    /// A function does not exist.
    UnknownFunction,
    /// A setting does not exist.
    UnknownSetting,
    /// A savepoint does not exist.
    NoSavepoint,
    /// A setting or parameter cannot have this value.
    InvalidValue,
    /// The statement exceeds the limits on length or depth.
    TooComplex,
    /// The statement was parsed, but is invalid.
    Invalid,
    /// The user may not do this.
    NotAllowed,
    /// The server cannot do this.
    NotSupported,
    /// Division by zero.
    DivisionByZero,
    /// The statement changes tables, and its transaction is read-only.
    ReadOnly,
    /// Another transaction changed the same row and committed first.
    Conflict,
    /// The query was cancelled, or its client disconnected.
    Cancelled,
    /// The query exceeded a time limit.
    TimedOut,
    /// The query needs more memory than is free, or than it may have.
    Memory,
    /// Too many queries run and wait.
    Busy,
    /// The server is about to stop.
    Stopping,
    /// Files cannot be read.
    Storage,
    /// A worker of a distributed query was lost. The query may succeed if it is run again.
    WorkerLost,
    /// A fault of the server.
    Internal,
}

/// The reason why a statement failed: its kind, and a text for its author that says what to do and contains no
/// credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The kind of the failure.
    pub kind: ErrorKind,
    /// The text, which has one or a few sentences.
    pub text: String,
}

impl QueryError {
    /// Creates an error of this kind.
    #[must_use]
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for QueryError {}
