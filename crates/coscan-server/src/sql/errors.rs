//! Converts errors of DataFusion to errors for clients.

use arrow::error::ArrowError;
use coscan_datafusion::{QueryError as ErrorText, is_conflict, is_of_dropped_table};
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::TokenizerError;

use crate::queries::{ErrorKind, QueryError};

/// Converts an error of DataFusion.
#[must_use]
pub fn from_datafusion(error: DataFusionError) -> QueryError {
    let kind = match &error {
        error if is_conflict(error) => ErrorKind::Conflict,
        error if is_of_dropped_table(error) => ErrorKind::UnknownTable,
        #[cfg(feature = "distributed")]
        error if coscan_distributed::WorkerLost::is(error) => ErrorKind::WorkerLost,
        #[cfg(feature = "distributed")]
        error if coscan_distributed::WorkersBusy::is(error) => ErrorKind::Busy,
        error => kind_of(error),
    };
    let mut text = ErrorText::from(error).to_string();
    if kind == ErrorKind::InvalidValue {
        text = text.replace("Parser error: ", ""); // It reads like a fault of syntax.
    }
    QueryError::new(kind, without_credentials(&text))
}

/// The error after a fault of the server, whose details are in the log.
pub(super) fn panicked(what: &str) -> QueryError {
    QueryError::new(
        ErrorKind::Internal,
        format!("{what} the statement failed; the server's log says where"),
    )
}

/// The error of a value that a function cannot read.
pub(super) fn invalid_value(text: impl Into<String>) -> DataFusionError {
    ArrowError::ParseError(text.into()).into()
}

/// The error of a text that cannot be parsed.
pub(crate) fn from_parser(error: &ParserError) -> QueryError {
    let text = error.to_string();
    let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
    QueryError::new(ErrorKind::Syntax, text)
}

/// The error of a text that cannot be split into tokens.
pub(crate) fn from_tokenizer(error: &TokenizerError) -> QueryError {
    QueryError::new(ErrorKind::Syntax, error.to_string())
}

fn kind_of(error: &DataFusionError) -> ErrorKind {
    match error {
        DataFusionError::SQL(..) => ErrorKind::Syntax,
        DataFusionError::NotImplemented(_) => ErrorKind::NotSupported,
        DataFusionError::Plan(text) => kind_of_plan(text),
        DataFusionError::SchemaError(error, _) => match **error {
            SchemaError::FieldNotFound { .. } => ErrorKind::UnknownColumn,
            _ => ErrorKind::Invalid,
        },
        DataFusionError::ResourcesExhausted(_) => ErrorKind::Memory,
        DataFusionError::ArrowError(error, _) => kind_of_arrow(error),
        DataFusionError::ParquetError(_)
        | DataFusionError::ObjectStore(_)
        | DataFusionError::IoError(_) => ErrorKind::Storage,
        DataFusionError::External(error) => match error.downcast_ref::<DataFusionError>() {
            Some(error) => kind_of(error),
            // Regular expressions are parsed by a library whose version is the engine's choice.
            None if error.to_string().starts_with("regex parse error") => ErrorKind::InvalidValue,
            None => error.downcast_ref::<ArrowError>().map_or(ErrorKind::Storage, kind_of_arrow),
        },
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            kind_of(error)
        }
        DataFusionError::Shared(error) => kind_of(error),
        DataFusionError::Collection(errors) => errors.first().map_or(ErrorKind::Internal, kind_of),
        DataFusionError::Configuration(_) => ErrorKind::InvalidValue,
        DataFusionError::Execution(text) if text.starts_with("there is no setting") => {
            ErrorKind::UnknownSetting
        }
        DataFusionError::Execution(_) => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

/// DataFusion distinguishes these errors by their texts only.
fn kind_of_plan(text: &str) -> ErrorKind {
    if text.starts_with("table '") || text.contains("not found") && text.contains("table") {
        ErrorKind::UnknownTable
    } else if text.starts_with("Invalid function") {
        ErrorKind::UnknownFunction
    } else if text.ends_with("not supported") || text.contains("not supported:") {
        ErrorKind::NotSupported
    } else {
        ErrorKind::Invalid
    }
}

fn kind_of_arrow(error: &ArrowError) -> ErrorKind {
    match error {
        ArrowError::DivideByZero => ErrorKind::DivisionByZero,
        ArrowError::CastError(_)
        | ArrowError::ParseError(_)
        | ArrowError::ArithmeticOverflow(_) => ErrorKind::InvalidValue,
        ArrowError::ExternalError(error) => match error.downcast_ref::<DataFusionError>() {
            Some(error) => kind_of(error),
            None => ErrorKind::Storage,
        },
        ArrowError::IoError(..) | ArrowError::ParquetError(_) => ErrorKind::Storage,
        ArrowError::NotYetImplemented(_) => ErrorKind::NotSupported,
        _ => ErrorKind::Invalid,
    }
}

/// The text without passwords and signatures in URLs, which are `user:password@` and all after `?`.
fn without_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        clean.push_str(before);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | ')');
        let (url, after) = url.split_at(url.find(is_end).unwrap_or(url.len()));
        let (url, query) = match url.find('?') {
            Some(at) => (&url[..at], "?…"),
            None => (url, ""),
        };
        let host_end = url.find('/').unwrap_or(url.len());
        let user_end = url[..host_end].rfind('@').map_or(0, |at| at + 1);
        clean.push_str(&url[user_end..]);
        clean.push_str(query);
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_no_credentials() {
        let text = "cannot read https://me:secret@host/a/b.parquet?X-Signature=abc, nor 's3://bucket/c?key=1': no";
        assert_eq!(
            without_credentials(text),
            "cannot read https://host/a/b.parquet?… nor 's3://bucket/c?…': no"
        );
        assert_eq!(without_credentials("a ? b :// c"), "a ? b :// c");
        assert_eq!(without_credentials("é://é@é?é"), "é://é?…");
    }

    #[test]
    fn sorts_of_errors_are_told_apart() {
        let kind = |error: DataFusionError| from_datafusion(error).kind;
        let plan = |text: &str| DataFusionError::Plan(text.to_owned());
        assert_eq!(kind(plan("table 'a.b.c' not found")), ErrorKind::UnknownTable);
        assert_eq!(kind(plan("Invalid function 'f'.")), ErrorKind::UnknownFunction);
        assert_eq!(kind(plan("no").context("here")), ErrorKind::Invalid);
        let zero = DataFusionError::from(ArrowError::DivideByZero);
        assert_eq!(kind(zero), ErrorKind::DivisionByZero);
        let memory = DataFusionError::ResourcesExhausted("no".to_owned());
        let shared = DataFusionError::Shared(std::sync::Arc::new(memory));
        let passed_on = ArrowError::ExternalError(Box::new(shared));
        assert_eq!(kind(DataFusionError::from(passed_on)), ErrorKind::Memory);
    }
}
