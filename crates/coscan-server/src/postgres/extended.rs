//! The extended protocol: statements are prepared, get parameters, and give rows a few at a time.

use std::sync::Arc;

use pgwire::api::portal::Format;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    BindComplete, CloseComplete, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;
use tokio::io::AsyncWrite;

use crate::engine::Planned;
use crate::postgres::connection::{Connection, Failure};
use crate::postgres::decode::{Bind, Frontend};
use crate::postgres::parameters::{types, values};
use crate::postgres::prepared::{Portal, Prepared, Progress, format};
use crate::postgres::rows::{Rows, description, fields};
use crate::postgres::simple::cancelled;
use crate::postgres::sqlstate::{PROTOCOL_VIOLATION, PgError, SYNTAX};

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
        let mut statements = self.engine.parse(text)?;
        let statement = statements.pop();
        if !statements.is_empty() {
            let text = "a prepared statement is one statement; send several in a simple query";
            return Err(PgError::new(SYNTAX, text).into());
        }
        let prepared = match statement {
            None => Prepared { planned: None, types: Vec::new() },
            Some(statement) => {
                self.deallocate(&statement);
                let planned = self.plan(statement, text).await?;
                Prepared { types: types(&planned, declared)?, planned: Some(planned) }
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
        let format = format(&message.result_formats);
        let progress = match &prepared.planned {
            None => Progress::Ended,
            Some(planned) => {
                fields(&planned.schema, &described(planned, &format))?;
                Progress::NotStarted(values(planned, &prepared.types, &message)?)
            }
        };
        self.prepared.add_portal(message.portal, Portal { prepared, format, progress })?;
        self.add(&PgWireBackendMessage::BindComplete(BindComplete::new()))
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), Failure> {
        let prepared = Arc::clone(self.prepared.statement(name)?);
        let types = prepared.types.iter().map(|of| of.oid()).collect();
        let types = ParameterDescription::new(types);
        self.add(&PgWireBackendMessage::ParameterDescription(types))?;
        self.describe(prepared.planned.as_ref(), &Format::UnifiedText)
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Failure> {
        let portal = self.prepared.portal(name)?;
        let (prepared, format) = (Arc::clone(&portal.prepared), portal.format.clone());
        self.describe(prepared.planned.as_ref(), &format)
    }

    fn describe(&mut self, planned: Option<&Planned>, format: &Format) -> Result<(), Failure> {
        match planned.filter(|planned| !planned.schema.fields().is_empty()) {
            Some(planned) => {
                let described = fields(&planned.schema, format)?;
                self.add(&description(&described))
            }
            None => self.add(&PgWireBackendMessage::NoData(NoData::new())),
        }
    }

    async fn execute(&mut self, name: &str, rows_max: u32) -> Result<(), Failure> {
        let cancel = self.begin();
        let portal = self.prepared.portal(name)?;
        let (prepared, format) = (Arc::clone(&portal.prepared), portal.format.clone());
        let progress = std::mem::replace(&mut portal.progress, Progress::Ended);
        let Some(planned) = &prepared.planned else {
            let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
            return self.add(&empty);
        };
        let mut rows = match progress {
            Progress::Suspended(rows) => rows,
            Progress::Ended => return Ok(self.complete(planned.command, 0)?),
            Progress::NotStarted(parameters) => {
                let query = tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Err(cancelled().into()),
                    query = self.engine.run(&self.session, planned.clone(), parameters) => query?,
                };
                let format = described(planned, &format);
                let rows = Rows::new(query, &format)?;
                rows.check(&fields(&planned.schema, &format)?)?;
                Box::new(rows)
            }
        };
        match self.send_rows(&mut rows, rows_max, &cancel).await? {
            (sent, true) => {
                drop(rows);
                Ok(self.complete(planned.command, sent)?)
            }
            (_, false) => {
                self.prepared.portal(name)?.progress = Progress::Suspended(rows);
                self.add(&PgWireBackendMessage::PortalSuspended(PortalSuspended::new()))
            }
        }
    }
}

/// Formats of columns; statements without columns have none to fit.
fn described(planned: &Planned, format: &Format) -> Format {
    if planned.schema.fields().is_empty() { Format::UnifiedText } else { format.clone() }
}
