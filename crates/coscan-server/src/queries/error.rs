//! Why a statement failed.

use std::fmt;

/// What sort of failure it is; each protocol has its own code for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The statement cannot be parsed.
    Syntax,
    /// A table does not exist, or the user may not know that it does.
    UnknownTable,
    /// A column does not exist.
    UnknownColumn,
    /// A function does not exist.
    UnknownFunction,
    /// A setting does not exist.
    UnknownSetting,
    /// A savepoint does not exist.
    NoSavepoint,
    /// A value that a setting or parameter cannot have.
    InvalidValue,
    /// The statement is longer or deeper than the server can take.
    TooComplex,
    /// The statement is parsed, but makes no sense.
    Invalid,
    /// The user may not do this.
    NotAllowed,
    /// The server cannot do this.
    NotSupported,
    /// Division by zero.
    DivisionByZero,
    /// Someone cancelled the query, or its client went away.
    Cancelled,
    /// The query took longer than it may.
    TimedOut,
    /// The query needs more memory than there is, or than it may have.
    Memory,
    /// Too many queries run and wait.
    Busy,
    /// The server is about to stop.
    Stopping,
    /// Files cannot be read.
    Storage,
    /// A fault of the server.
    Internal,
}

/// Why a statement failed: the sort, and a text for its author that says what to do and names no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The sort.
    pub kind: ErrorKind,
    /// One or a few sentences.
    pub text: String,
}

impl QueryError {
    /// An error of this sort.
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
