//! The simple protocol, with a text of statements and their results as text.

use std::sync::Arc;

use datafusion::common::ParamValues;
use pgwire::api::portal::Format;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::EmptyQueryResponse;
use tokio::io::AsyncWrite;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::connection_statements::connection_statement;
use crate::postgres::copy_statements::{Copy, copy_statement};
use crate::postgres::prepared::Prepared;
use crate::postgres::rows::{Rows, description, fields};
use crate::postgres::sqlstate::{NOT_SUPPORTED, PgError};
use crate::sql::{Command, Planned};

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Runs all statements in a text, up to the first that fails.
    pub(super) async fn simple(&mut self, text: &str) -> Result<(), Failure> {
        let statements = self.parse_text(text).await?;
        if statements.is_empty() {
            let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
            return Ok(self.writer.add(&empty)?);
        }
        let mut statements = statements.into_iter();
        while let Some(statement) = statements.next() {
            self.check_transaction(&statement)?;
            let (copy, statement) = copy_statement(statement)?;
            if let Some(Copy::In(copy)) = copy {
                if statements.len() > 0 {
                    let text = "COPY … FROM STDIN is the last statement of its text; send the others after the rows";
                    return Err(PgError::new(NOT_SUPPORTED, text).into());
                }
                return self.start_copy(&copy, true).await;
            }
            let (cursor, statement) = match statement {
                Some(statement) => connection_statement(statement)?,
                None => (None, None),
            };
            let planned = match statement {
                None => None,
                Some(statement) => Some(self.plan(statement, text).await?),
            };
            if let (Some(Copy::Out(copy)), Some(planned)) = (&copy, &planned) {
                self.copy_out(copy, planned, ParamValues::List(Vec::new())).await?;
                continue;
            }
            match (cursor, planned) {
                (Some(cursor), planned) => {
                    let (types, cursor_of) = (Vec::new(), None);
                    let query = Prepared { planned, types, cursor: cursor_of, copy: None };
                    let query = Arc::new(query);
                    let (values, format) = (ParamValues::List(Vec::new()), Format::UnifiedText);
                    self.run_cursor(&cursor, query, values, format, true).await?;
                }
                (None, Some(planned)) => self.run_all(planned).await?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    async fn run_all(&mut self, planned: Planned) -> Result<(), Failure> {
        let (cancel, command) = (self.cancel_token(), planned.command);
        self.begin_command(command)?;
        if command.is_change() {
            return self.run_change(planned, ParamValues::List(Vec::new())).await;
        }
        let format = Format::UnifiedText;
        let described = fields(&planned.schema, &format)?;
        let query = self.run_planned(planned, ParamValues::List(Vec::new())).await?;
        let returns_rows = matches!(command, Command::Select | Command::Explain | Command::Show);
        if returns_rows {
            self.writer.add(&description(&described))?;
        }
        let mut rows = Rows::new(query, &format)?;
        let (sent, _) = self.send_rows(&mut rows, 0, &cancel).await?;
        drop(rows);
        Ok(self.complete(command, sent)?)
    }
}
