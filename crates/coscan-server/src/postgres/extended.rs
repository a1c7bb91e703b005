//! The extended protocol, in which statements are prepared, get parameters, and return rows in parts.

use std::sync::Arc;

use datafusion::common::ParamValues;
use pgwire::api::portal::Format;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    BindComplete, CloseComplete, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::connection_statements::{ConnectionStatement, Lifetime, connection_statement};
use crate::postgres::copy_statements::{Copy, copy_statement};
use crate::postgres::decode::{Bind, Frontend};
use crate::postgres::parameters::{cast_parameters, types};
use crate::postgres::prepared::{Portal, Prepared, Progress, format};
use crate::postgres::rows::{Rows, description, fields};
use crate::postgres::sqlstate::{NOT_IN_STATE, PROTOCOL_VIOLATION, PgError, SYNTAX};
use crate::postgres::values::values;
use crate::sql::Planned;

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Answers a message of the extended protocol.
    pub(super) async fn extended(&mut self, message: Frontend) -> Result<(), Failure> {
        match message {
            Frontend::Parse { name, sql, types } => self.parse(name, &sql, &types).await,
            Frontend::Bind(message) => self.bind(message),
            Frontend::DescribeStatement(name) => self.describe_statement(&name),
            Frontend::DescribePortal(name) => self.describe_portal(&name),
            Frontend::Execute { portal, rows_max } => self.execute(&portal, rows_max).await,
            Frontend::CloseStatement(name) => {
                self.prepared.close_statement(&name);
                self.add(&PgWireBackendMessage::CloseComplete(CloseComplete::new()))
            }
            Frontend::ClosePortal(name) => {
                self.prepared.close_portal(&name);
                self.add(&PgWireBackendMessage::CloseComplete(CloseComplete::new()))
            }
            _ => Err(PgError::new(PROTOCOL_VIOLATION, "this message is not expected here").into()),
        }
    }

    fn add(&mut self, message: &PgWireBackendMessage) -> Result<(), Failure> {
        Ok(self.writer.add(message)?)
    }

    async fn parse(&mut self, name: String, text: &str, declared: &[u32]) -> Result<(), Failure> {
        if name.is_empty() {
            self.prepared.close_statement("");
        }
        let mut statements = self.parse_text(text).await?;
        let statement = statements.pop();
        if !statements.is_empty() {
            let text = "a prepared statement is one statement; send several in a simple query";
            return Err(PgError::new(SYNTAX, text).into());
        }
        let (copy, (cursor, statement)) = match statement {
            None => (None, (None, None)),
            Some(statement) => {
                self.check_transaction(&statement)?;
                match copy_statement(statement)? {
                    (copy, Some(statement)) => (copy, connection_statement(statement)?),
                    (copy, None) => (copy, (None, None)),
                }
            }
        };
        let prepared = match statement {
            None => Prepared { planned: None, types: Vec::new(), cursor, copy },
            Some(mut statement) => {
                cast_parameters(&mut statement, declared);
                let planned = self.plan(statement, text).await?;
                let types = types(&planned, declared)?;
                Prepared { types, planned: Some(planned), cursor, copy }
            }
        };
        self.prepared.add_statement(name, prepared)?;
        self.add(&PgWireBackendMessage::ParseComplete(ParseComplete::new()))
    }

    fn bind(&mut self, message: Bind) -> Result<(), Failure> {
        if message.portal.is_empty() {
            self.prepared.close_portal("");
        }
        let prepared = Arc::clone(self.prepared.statement(&message.statement)?);
        let format = match &prepared.copy {
            Some(Copy::Out(copy)) => copy.format(), // The statement says it.
            _ => format(&message.result_formats),
        };
        let progress = match &prepared.planned {
            None => Progress::Ended,
            Some(planned) => {
                fields(&planned.schema, &described(planned, &format))?;
                Progress::NotStarted(values(planned, &prepared.types, &message)?)
            }
        };
        self.prepared.add_portal(
            message.portal,
            Portal { prepared, format, progress, lifetime: Lifetime::Transaction },
        )?;
        self.add(&PgWireBackendMessage::BindComplete(BindComplete::new()))
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), Failure> {
        let prepared = Arc::clone(self.prepared.statement(name)?);
        let types = prepared.types.iter().map(|of| of.oid()).collect();
        let types = ParameterDescription::new(types);
        self.add(&PgWireBackendMessage::ParameterDescription(types))?;
        self.describe(&prepared, &Format::UnifiedText)
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Failure> {
        let portal = self.prepared.portal(name)?;
        let (prepared, format) = (Arc::clone(&portal.prepared), portal.format.clone());
        self.describe(&prepared, &format)
    }

    fn describe(&mut self, prepared: &Prepared, format: &Format) -> Result<(), Failure> {
        let planned = match &prepared.cursor {
            None if prepared.copy.is_some() => None,
            None => prepared.planned.as_ref(),
            Some(ConnectionStatement::Fetch(name, _)) => {
                self.prepared.portal(name)?.prepared.planned.as_ref()
            }
            Some(_) => None,
        };
        match planned.filter(|planned| planned.returns_rows()) {
            Some(planned) => {
                let described = fields(&planned.schema, format)?;
                self.add(&description(&described))
            }
            None => self.add(&PgWireBackendMessage::NoData(NoData::new())),
        }
    }

    async fn execute(&mut self, name: &str, rows_max: u32) -> Result<(), Failure> {
        let cancel = self.cancel_token();
        let portal = self.prepared.portal(name)?;
        let prepared = Arc::clone(&portal.prepared);
        if let Some(cursor) = &prepared.cursor {
            self.begin_connection_statement()?;
            let portal = self.prepared.portal(name)?;
            let values = match std::mem::replace(&mut portal.progress, Progress::Ended) {
                Progress::NotStarted(values) => values,
                _ => ParamValues::List(Vec::new()),
            };
            let format = portal.format.clone();
            let query = Arc::clone(&prepared);
            return self.run_cursor(cursor, query, values, format, false).await;
        }
        if let Some(Copy::In(copy)) = &prepared.copy {
            self.begin_connection_statement()?;
            return self.start_copy(copy, false).await;
        }
        let Some(planned) = &prepared.planned else {
            let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
            return self.add(&empty);
        };
        self.begin_command(planned.command)?;
        let portal = self.prepared.portal(name)?;
        if let Some(Copy::Out(copy)) = &prepared.copy {
            return match std::mem::replace(&mut portal.progress, Progress::Ended) {
                Progress::NotStarted(values) => self.copy_out(copy, planned, values).await,
                _ => Err(PgError::new(NOT_IN_STATE, "the portal has run; bind it again").into()),
            };
        }
        if planned.command.is_change() {
            return match std::mem::replace(&mut portal.progress, Progress::Ended) {
                Progress::NotStarted(values) => self.run_change(planned.clone(), values).await,
                _ => Err(PgError::new(NOT_IN_STATE, "the portal has run; bind it again").into()),
            };
        }
        self.start_portal(name).await?;
        match self.send_portal(name, rows_max, &cancel).await? {
            (sent, true) => Ok(self.complete(planned.command, sent)?),
            (_, false) => self.add(&PgWireBackendMessage::PortalSuspended(PortalSuspended::new())),
        }
    }

    /// Starts the query of a portal, if it has not started.
    pub(super) async fn start_portal(&mut self, name: &str) -> Result<(), Failure> {
        let portal = self.prepared.portal(name)?;
        let progress = std::mem::replace(&mut portal.progress, Progress::Ended);
        let (Progress::NotStarted(values), Some(planned)) = (&progress, &portal.prepared.planned)
        else {
            portal.progress = progress;
            return Ok(());
        };
        let format = described(planned, &portal.format);
        let (planned, values) = (planned.clone(), values.clone());
        let described_as = fields(&planned.schema, &format)?;
        let query = self.run_planned(planned, values).await?;
        let rows = Rows::new(query, &format)?;
        rows.check(&described_as)?;
        self.prepared.portal(name)?.progress = Progress::Suspended(Box::new(rows), Instant::now());
        Ok(())
    }

    /// Sends rows of a portal that has started, up to `rows_max` (0: all). Returns their number, and whether all were
    /// sent.
    pub(super) async fn send_portal(
        &mut self,
        name: &str,
        rows_max: u32,
        cancel: &CancellationToken,
    ) -> Result<(usize, bool), Failure> {
        let portal = self.prepared.portal(name)?;
        let progress = std::mem::replace(&mut portal.progress, Progress::Ended);
        let Progress::Suspended(mut rows, _) = progress else { return Ok((0, true)) };
        let (sent, has_ended) = self.send_rows(&mut rows, rows_max, cancel).await?;
        if !has_ended {
            self.prepared.portal(name)?.progress = Progress::Suspended(rows, Instant::now());
        }
        Ok((sent, has_ended))
    }
}

/// The formats of columns. A statement without columns has no formats to match.
fn described(planned: &Planned, format: &Format) -> Format {
    if planned.schema.fields().is_empty() { Format::UnifiedText } else { format.clone() }
}
