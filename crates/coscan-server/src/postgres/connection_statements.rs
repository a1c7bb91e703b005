//! Statements about the state of a connection: DECLARE, FETCH and CLOSE for cursors, DEALLOCATE for prepared
//! statements.

use datafusion::sql::sqlparser::ast::{
    CloseCursor, Declare, FetchDirection, Statement, Value, ValueWithSpan,
};

use crate::postgres::sqlstate::{NOT_IN_STATE, NOT_SUPPORTED, PgError, SYNTAX};
use crate::sql::normalized;

/// The lifetime of a portal, unless it is closed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Ends with its transaction.
    Transaction,
    /// WITH HOLD. Ends with its transaction if that is rolled back.
    Held,
    /// Ends with the connection, since its transaction was committed.
    Connection,
}

/// A statement about cursors or prepared statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectionStatement {
    /// Declares a cursor. The query is that of the prepared statement.
    Declare(String, Lifetime),
    /// Fetches a number of rows of a cursor, or all with 0.
    Fetch(String, u32),
    /// Closes one cursor, or all.
    Close(Option<String>),
    /// Deallocates one prepared statement, or all.
    Deallocate(Option<String>),
}

impl ConnectionStatement {
    /// The bytes that it takes beside a plan.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Declare(name, _) | Self::Fetch(name, _) | Self::Close(Some(name)) => name.len(),
            Self::Deallocate(Some(name)) => name.len(),
            Self::Close(None) | Self::Deallocate(None) => 0,
        }
    }
}

/// The effect of a statement on cursors or prepared statements, and the rest to plan, which is a declared query.
///
/// # Errors
/// If it is a cursor that does not only move forward.
pub(super) fn connection_statement(
    statement: Statement,
) -> Result<(Option<ConnectionStatement>, Option<Statement>), PgError> {
    match statement {
        Statement::Declare { stmts } => {
            let (name, lifetime, query) = declared(stmts)?;
            Ok((Some(ConnectionStatement::Declare(name, lifetime)), Some(query)))
        }
        Statement::Fetch { name, direction, into: None, .. } => {
            let rows = rows_of(&direction)?;
            Ok((Some(ConnectionStatement::Fetch(normalized(&name), rows)), None))
        }
        Statement::Close { cursor } => {
            let name = match cursor {
                CloseCursor::All => None,
                CloseCursor::Specific { name } => Some(normalized(&name)),
            };
            Ok((Some(ConnectionStatement::Close(name)), None))
        }
        Statement::Deallocate { name, .. } => {
            let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            let name = (!is_all).then(|| normalized(&name));
            Ok((Some(ConnectionStatement::Deallocate(name)), None))
        }
        other => Ok((None, Some(other))),
    }
}

fn declared(mut declares: Vec<Declare>) -> Result<(String, Lifetime, Statement), PgError> {
    let unclear = || PgError::new(SYNTAX, "write DECLARE name CURSOR FOR a query");
    let declare = declares.pop().filter(|_| declares.is_empty()).ok_or_else(unclear)?;
    let not_supported = |text: &str| Err(PgError::new(NOT_SUPPORTED, text));
    if declare.scroll == Some(true) {
        return not_supported("cursors move forward only; SCROLL is not supported");
    }
    if declare.binary == Some(true) {
        return not_supported("DECLARE … BINARY is not supported; ask for binary results of FETCH");
    }
    let (Some(query), [name]) = (declare.for_query, &declare.names[..]) else {
        return Err(unclear());
    };
    let lifetime = match declare.hold {
        Some(true) => Lifetime::Held,
        _ => Lifetime::Transaction,
    };
    Ok((normalized(name), lifetime, Statement::Query(query)))
}

fn rows_of(direction: &FetchDirection) -> Result<u32, PgError> {
    let number = |limit: &ValueWithSpan| match &limit.value {
        Value::Number(number, _) => number.parse().ok().filter(|rows| *rows > 0),
        _ => None,
    };
    let rows = match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(1),
        FetchDirection::All | FetchDirection::ForwardAll => Some(0),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            number(limit)
        }
        _ => None,
    };
    rows.ok_or_else(|| {
        PgError::new(NOT_IN_STATE, "cursors move forward only: FETCH NEXT, FETCH n, FETCH ALL")
    })
}
