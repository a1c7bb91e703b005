//! Statements across the calls that concern them: planned, prepared, bound, running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::sql::{
    ActionCreatePreparedStatementResult, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, Ticket};
use bytes::Bytes;
use datafusion::common::{ParamValues, ScalarValue};
use prost::Message;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::flight::handles::{Bounds, Handles};
use crate::flight::parameters;
use crate::flight::placeholders::numbered;
use crate::flight::results::{FlightDataStream, of_query, ready, schema_bytes};
use crate::flight::status::unwritable;
use crate::flight::wire_types::wire_schema;
use crate::queries::{ErrorKind, QueryError, cancelled};
use crate::sql::{Planned, Session, Sql, SqlService};
use crate::users::User;

/// The time for which a ticket is valid, from GetFlightInfo to DoGet.
const TICKET_LIFETIME: Duration = Duration::from_secs(600);

/// The maximum number of statements of a user, and of all users.
const COUNT_MAX: (usize, usize) = (1000, 10_000);

/// The maximum bytes of text and values of a user's statements.
const BYTES_MAX: usize = 8 << 20;

/// The statements of clients, found by ticket or handle.
#[derive(Debug)]
pub(super) struct Statements {
    service: Arc<SqlService>,
    tickets: Handles<Statement>,
    prepared: Handles<Arc<Prepared>>,
}

/// A statement that can be run.
#[derive(Clone, Debug)]
struct Statement {
    user: Arc<User>,
    planned: Planned,
    /// Cancels all running executions of the statement.
    cancel: CancellationToken,
}

impl Statement {
    fn new(session: &Session, planned: Planned) -> Self {
        Self { user: Arc::clone(&session.user), planned, cancel: CancellationToken::new() }
    }
}

#[derive(Debug)]
struct Prepared {
    user: Arc<User>,
    planned: Planned,
    /// The values for its parameters, which all executions use until others are bound.
    values: Mutex<Vec<ScalarValue>>,
}

impl Prepared {
    fn values(&self) -> MutexGuard<'_, Vec<ScalarValue>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bound(&self) -> Result<Planned, QueryError> {
        self.planned.bind(self.values().clone())
    }
}

impl Statements {
    pub(super) fn new(service: Arc<SqlService>) -> Self {
        let bounds = |lifetime| Bounds {
            lifetime,
            of_user: COUNT_MAX.0,
            of_all: COUNT_MAX.1,
            bytes_of_user: BYTES_MAX,
        };
        let lifetime = service.limits().token_lifetime;
        let (tickets, prepared) = (bounds(TICKET_LIFETIME), bounds(lifetime));
        Self { service, tickets: Handles::new(tickets), prepared: Handles::new(prepared) }
    }

    /// Plans a statement without parameters.
    pub(super) async fn plan(&self, session: &Session, sql: &str) -> Result<Planned, Status> {
        let planned = self.service.plan(session, Sql::Text(sql)).await?;
        Ok(planned.bind(Vec::new())?)
    }

    /// Describes how to fetch the result of a statement. A statement without a result is executed now, since clients
    /// may fetch late, or never.
    pub(super) async fn info(
        &self,
        session: &Session,
        planned: Planned,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, Status> {
        if !planned.returns_rows() {
            self.execute(session, planned.clone()).await?;
        }
        let schema = wire_schema(&planned.schema);
        let bytes = planned.bytes();
        let statement = Statement::new(session, planned);
        let statement_handle = self.tickets.add(&session.user.name, bytes, statement)?;
        let ticket = TicketStatementQuery { statement_handle }.as_any();
        info_of(&schema, Ticket::new(ticket.encode_to_vec()), descriptor)
    }

    /// Runs the statement of a ticket.
    pub(super) async fn fetch(
        &self,
        session: &Arc<Session>,
        handle: &[u8],
    ) -> Result<FlightDataStream, Status> {
        let statement = self.tickets.spend_of(&session.user.name, handle);
        self.run(session, granted(session, statement)?).await
    }

    /// Runs a prepared statement with the bound values.
    pub(super) async fn fetch_prepared(
        &self,
        session: &Arc<Session>,
        handle: &[u8],
    ) -> Result<FlightDataStream, Status> {
        let planned = self.bound(session, handle)?;
        if !planned.returns_rows() {
            self.execute(session, planned.clone()).await?;
        }
        self.run(session, Statement::new(session, planned)).await
    }

    /// Runs a statement, unless it was executed before.
    async fn run(
        &self,
        session: &Arc<Session>,
        statement: Statement,
    ) -> Result<FlightDataStream, Status> {
        let Statement { planned, cancel, .. } = statement;
        let schema = wire_schema(&planned.schema);
        if !planned.returns_rows() {
            return Ok(ready(RecordBatch::new_empty(schema)));
        }
        let query = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            query = self.service.run(session, planned, ParamValues::List(Vec::new())) => query,
        };
        Ok(of_query(&self.service, session, query?, schema, cancel))
    }

    /// Whether there is a database whose tables users may change.
    pub(super) fn has_database(&self) -> bool {
        self.service.database().is_some()
    }

    /// Executes a statement without rows as its result. Returns how many rows it has changed.
    pub(super) async fn execute(&self, session: &Session, planned: Planned) -> Result<i64, Status> {
        if planned.returns_rows() {
            let text = "the statement has rows as its result: send it as a query";
            return Err(QueryError::new(ErrorKind::NotSupported, text).into());
        }
        let running = self.service.run(session, planned, ParamValues::List(Vec::new())).await?;
        Ok(i64::try_from(running.changed_rows().await?).unwrap_or(i64::MAX))
    }

    /// Cancels the running executions of a statement, and all later ones.
    pub(super) fn cancel(&self, session: &Session, handle: &[u8]) -> Result<(), Status> {
        let statement = self.tickets.get_of(&session.user.name, handle);
        granted(session, statement)?.cancel.cancel();
        Ok(())
    }

    /// Prepares a statement.
    pub(super) async fn prepare(
        &self,
        session: &Session,
        sql: &str,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let sql = numbered(sql);
        let planned = self.service.plan(session, Sql::Text(&sql)).await?;
        let dataset_schema = match planned.returns_rows() {
            true => schema_bytes(&wire_schema(&planned.schema))?,
            false => Bytes::new(),
        };
        let parameter_schema = match planned.parameters.is_empty() {
            true => Bytes::new(),
            false => schema_bytes(&parameters::schema(&planned))?,
        };
        let user = Arc::clone(&session.user);
        let prepared = Arc::new(Prepared { user, planned, values: Mutex::default() });
        let handle = self.prepared.add(&session.user.name, sql.len(), prepared)?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle,
            dataset_schema,
            parameter_schema,
        })
    }

    /// The plan of a prepared statement, with its parameters.
    pub(super) fn planned(&self, session: &Session, handle: &[u8]) -> Result<Planned, Status> {
        Ok(self.find(session, handle)?.planned.clone())
    }

    /// The plan of a prepared statement, with the bound values in place of its parameters.
    pub(super) fn bound(&self, session: &Session, handle: &[u8]) -> Result<Planned, Status> {
        Ok(self.find(session, handle)?.bound()?)
    }

    /// Binds values to the parameters of a prepared statement.
    pub(super) fn bind(
        &self,
        session: &Session,
        handle: &[u8],
        values: Vec<ScalarValue>,
    ) -> Result<(), Status> {
        let prepared = self.find(session, handle)?;
        prepared.planned.bind(values.clone())?;
        let value_bytes: usize = values.iter().map(ScalarValue::size).sum();
        self.prepared.charge(handle, prepared.planned.bytes() + value_bytes);
        *prepared.values() = values;
        Ok(())
    }

    /// Drops a prepared statement. An unknown handle is not an error.
    pub(super) fn close(&self, session: &Session, handle: &[u8]) {
        self.prepared.remove_of(&session.user.name, handle);
    }

    fn find(&self, session: &Session, handle: &[u8]) -> Result<Arc<Prepared>, Status> {
        let prepared = self.prepared.get_of(&session.user.name, handle);
        prepared.filter(|prepared| prepared.user == session.user).ok_or_else(|| {
            Status::not_found("the prepared statement is closed or has expired; prepare it again")
        })
    }
}

/// The statement of a ticket. Plans hold the grants of their user, so they end with the user's entry.
fn granted(session: &Session, statement: Option<Statement>) -> Result<Statement, Status> {
    statement.filter(|statement| statement.user == session.user).ok_or_else(|| {
        Status::not_found("the ticket is unknown or has expired; ask for the statement again")
    })
}

/// Describes how to fetch rows.
pub(super) fn info_of(
    schema: &SchemaRef,
    ticket: Ticket,
    descriptor: FlightDescriptor,
) -> Result<FlightInfo, Status> {
    let info = FlightInfo::new().try_with_schema(schema).map_err(unwritable)?;
    let endpoint = FlightEndpoint::new().with_ticket(ticket);
    Ok(info.with_endpoint(endpoint).with_descriptor(descriptor))
}
