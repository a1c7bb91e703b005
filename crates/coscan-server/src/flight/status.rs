//! Errors as gRPC statuses.

use arrow::error::ArrowError;
use tonic::{Code, Status};

use crate::queries::{ErrorKind, QueryError};

/// The maximum length of an error text, in bytes. It is sent as a header, whose length clients limit.
const TEXT_BYTES_MAX: usize = 2000;

impl From<QueryError> for Status {
    fn from(error: QueryError) -> Self {
        let end = error.text.floor_char_boundary(TEXT_BYTES_MAX);
        Self::new(code(error.kind), &error.text[..end])
    }
}

fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Syntax
        | ErrorKind::UnknownColumn
        | ErrorKind::UnknownFunction
        | ErrorKind::UnknownSetting
        | ErrorKind::NoSavepoint
        | ErrorKind::InvalidValue
        | ErrorKind::TooComplex
        | ErrorKind::Invalid
        | ErrorKind::DivisionByZero => Code::InvalidArgument,
        ErrorKind::UnknownTable => Code::NotFound,
        ErrorKind::NotAllowed | ErrorKind::ReadOnly => Code::PermissionDenied,
        ErrorKind::NotSupported => Code::Unimplemented,
        ErrorKind::Conflict => Code::Aborted,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::TimedOut => Code::DeadlineExceeded,
        ErrorKind::Memory | ErrorKind::Busy => Code::ResourceExhausted,
        ErrorKind::Stopping => Code::Unavailable,
        ErrorKind::Storage | ErrorKind::Internal => Code::Internal,
        ErrorKind::WorkerLost => Code::Unavailable,
    }
}

/// The error of a malformed message.
pub(super) fn malformed(error: impl std::fmt::Display) -> Status {
    QueryError::new(ErrorKind::Invalid, format!("the message cannot be read: {error}")).into()
}

/// The error of an answer that cannot be encoded.
pub(super) fn unwritable(error: impl Into<ArrowError>) -> Status {
    QueryError::new(ErrorKind::Internal, error.into().to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let error = QueryError::new(ErrorKind::Syntax, "é".repeat(TEXT_BYTES_MAX));
        let status = Status::from(error);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "é".repeat(TEXT_BYTES_MAX / 2));
    }
}
