//! Cursors: portals that SQL makes and reads with DECLARE, FETCH and CLOSE.

use std::sync::Arc;

use datafusion::common::ParamValues;
use datafusion::sql::sqlparser::ast::{
    CloseCursor, Declare, FetchDirection, Statement, Value, ValueWithSpan,
};
use pgwire::api::portal::Format;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{CommandComplete, TransactionStatus};
use tokio::io::AsyncWrite;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::prepared::{Portal, Prepared, Progress};
use crate::postgres::rows::{description, fields};
use crate::postgres::sqlstate::{
    INVALID_CURSOR_NAME, NO_TRANSACTION, NOT_IN_STATE, NOT_SUPPORTED, PgError, SYNTAX,
};

/// A statement about a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CursorStatement {
    /// The query is that of the prepared statement.
    Declare(String),
    /// Rows of a cursor; 0 for all.
    Fetch(String, u32),
    /// One cursor, or all.
    Close(Option<String>),
}

/// What a statement does with a cursor, and what is left to plan: a query that is declared.
///
/// # Errors
/// If it is a cursor that moves other than forward, or that outlives its transaction.
pub(super) fn cursor_statement(
    statement: Statement,
) -> Result<(Option<CursorStatement>, Option<Statement>), PgError> {
    match statement {
        Statement::Declare { stmts } => {
            let (name, query) = declared(stmts)?;
            Ok((Some(CursorStatement::Declare(name)), Some(query)))
        }
        Statement::Fetch { name, direction, into: None, .. } => {
            let rows = rows_of(&direction)?;
            Ok((Some(CursorStatement::Fetch(name.value, rows)), None))
        }
        Statement::Close { cursor } => {
            let name = match cursor {
                CloseCursor::All => None,
                CloseCursor::Specific { name } => Some(name.value),
            };
            Ok((Some(CursorStatement::Close(name)), None))
        }
        other => Ok((None, Some(other))),
    }
}

fn declared(mut declares: Vec<Declare>) -> Result<(String, Statement), PgError> {
    let unclear = || PgError::new(SYNTAX, "write DECLARE name CURSOR FOR a query");
    let declare = declares.pop().filter(|_| declares.is_empty()).ok_or_else(unclear)?;
    let not_supported = |text: &str| Err(PgError::new(NOT_SUPPORTED, text));
    if declare.hold == Some(true) {
        return not_supported("cursors end with their transaction; WITH HOLD is not supported");
    }
    if declare.scroll == Some(true) {
        return not_supported("cursors move forward only; SCROLL is not supported");
    }
    if declare.binary == Some(true) {
        return not_supported("DECLARE … BINARY is not supported; ask for binary results of FETCH");
    }
    let (Some(query), [name]) = (declare.for_query, &declare.names[..]) else {
        return Err(unclear());
    };
    Ok((name.value.clone(), Statement::Query(query)))
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

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Runs a statement about a cursor. `values` are those of the declared query; rows are sent in `format`, after
    /// their description if the client expects it.
    pub(super) async fn run_cursor(
        &mut self,
        statement: &CursorStatement,
        query: Arc<Prepared>,
        values: ParamValues,
        format: Format,
        describe: bool,
    ) -> Result<(), Failure> {
        let tag = match statement {
            CursorStatement::Declare(name) => {
                self.declare(name.clone(), query, values)?;
                "DECLARE CURSOR".to_owned()
            }
            CursorStatement::Fetch(name, rows_max) => {
                let cursor = self.cursor(name)?;
                let query = cursor.prepared.planned.as_ref();
                let described = query.map(|query| fields(&query.schema, &format)).transpose()?;
                let described = described.unwrap_or_default();
                match &cursor.progress {
                    Progress::NotStarted(_) => cursor.format = format,
                    Progress::Suspended(rows) => rows.check(&described)?,
                    Progress::Ended => {}
                }
                if describe {
                    self.writer.add(&description(&described))?;
                }
                let cancel = self.begin();
                self.start_portal(name, &cancel).await?;
                let (sent, _) = self.send_portal(name, *rows_max, &cancel).await?;
                format!("FETCH {sent}")
            }
            CursorStatement::Close(None) => {
                self.prepared.close_portals();
                "CLOSE CURSOR ALL".to_owned()
            }
            CursorStatement::Close(Some(name)) => {
                self.cursor(name)?;
                self.prepared.close_portal(name);
                "CLOSE CURSOR".to_owned()
            }
        };
        let complete = CommandComplete::new(tag);
        Ok(self.writer.add(&PgWireBackendMessage::CommandComplete(complete))?)
    }

    fn declare(
        &mut self,
        name: String,
        query: Arc<Prepared>,
        values: ParamValues,
    ) -> Result<(), PgError> {
        if self.transaction == TransactionStatus::Idle {
            let text = "cursors live in transactions; send BEGIN first";
            return Err(PgError::new(NO_TRANSACTION, text));
        }
        let query = Prepared { cursor: None, ..Prepared::clone(&query) };
        let progress = Progress::NotStarted(values);
        let portal = Portal { prepared: Arc::new(query), format: Format::UnifiedText, progress };
        self.prepared.add_portal(name, portal)
    }

    /// A cursor by its name; the portal without a name is none.
    fn cursor(&mut self, name: &str) -> Result<&mut Portal, PgError> {
        let unknown =
            || PgError::new(INVALID_CURSOR_NAME, format!("there is no cursor \"{name}\""));
        self.prepared.portal(name).ok().filter(|_| !name.is_empty()).ok_or_else(unknown)
    }
}
