//! Error codes of PostgreSQL.

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::ErrorResponse;

use crate::queries::{ErrorKind, QueryError};

pub(super) const PROTOCOL_VIOLATION: &str = "08P01";
pub(super) const NOT_IN_STATE: &str = "55000";
pub(super) const NO_TRANSACTION: &str = "25P01";
pub(super) const INVALID_AUTHORIZATION: &str = "28000";
pub(super) const INVALID_PASSWORD: &str = "28P01";
pub(super) const IN_FAILED_TRANSACTION: &str = "25P02";
pub(super) const INVALID_STATEMENT_NAME: &str = "26000";
pub(super) const INVALID_CURSOR_NAME: &str = "34000";
/// Used for connections only, since connection pools react to it.
pub(super) const TOO_MANY_CONNECTIONS: &str = "53300";
pub(super) const CONFIGURATION_LIMIT_EXCEEDED: &str = "53400";
pub(super) const LIMIT_EXCEEDED: &str = "54000";
pub(super) const ADMIN_SHUTDOWN: &str = "57P01";
pub(super) const IDLE_SESSION_TIMEOUT: &str = "57P05";
pub(super) const QUERY_CANCELED: &str = "57014";
/// The code of rows of a COPY that are not in its form.
pub(super) const BAD_COPY: &str = "22P04";
pub(super) const NOT_SUPPORTED: &str = "0A000";
pub(super) const SYNTAX: &str = "42601";
/// The code of a value that cannot be read.
pub(super) const INVALID_VALUE: &str = "22P02";

/// An error in the form that is sent to a client.
#[derive(Clone, Debug)]
pub(super) struct PgError {
    pub(super) code: &'static str,
    pub(super) text: String,
}

impl PgError {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The message of the error. After a `FATAL` error the connection is closed.
    pub(super) fn message(&self, severity: &str) -> PgWireBackendMessage {
        let fields = [(b'S', severity), (b'V', severity), (b'C', self.code), (b'M', &self.text)];
        let fields = fields.map(|(kind, text)| (kind, text.replace('\0', "")));
        PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields.to_vec()))
    }
}

impl From<QueryError> for PgError {
    fn from(error: QueryError) -> Self {
        Self { code: sqlstate(error.kind), text: error.text }
    }
}

/// The code of a kind of error.
#[must_use]
pub fn sqlstate(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Syntax => SYNTAX,
        ErrorKind::UnknownTable => "42P01",
        ErrorKind::UnknownColumn => "42703",
        ErrorKind::UnknownFunction => "42883",
        ErrorKind::UnknownSetting => "42704",
        ErrorKind::NoSavepoint => "3B001",
        ErrorKind::InvalidValue => "22023",
        ErrorKind::TooComplex => "54001",
        ErrorKind::Invalid => "42000",
        ErrorKind::NotAllowed => "42501",
        ErrorKind::NotSupported => NOT_SUPPORTED,
        ErrorKind::DivisionByZero => "22012",
        ErrorKind::Conflict => "40001",
        ErrorKind::ReadOnly => "25006",
        ErrorKind::Cancelled | ErrorKind::TimedOut => "57014",
        ErrorKind::Memory => "53200",
        ErrorKind::Busy => CONFIGURATION_LIMIT_EXCEEDED,
        ErrorKind::Stopping => ADMIN_SHUTDOWN,
        ErrorKind::Storage => "58030",
        ErrorKind::WorkerLost => "57P02",
        ErrorKind::Internal => "XX000",
    }
}
