//! The calls of the protocol, each of which is authenticated first.

use std::pin::Pin;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    Command, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, DoPutUpdateResult,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaResult,
    Ticket,
};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use crate::flight::actions::{self, CLOSE_SESSION, NO_SUBSTRAIT, no_transaction};
use crate::flight::command;
use crate::flight::metadata;
use crate::flight::parameters;
use crate::flight::results::{FlightDataStream, ready, schema_bytes};
use crate::flight::session_options;
use crate::flight::sessions::Sessions;
use crate::flight::statements::{Statements, info_of};
use crate::flight::status::malformed;
use crate::flight::wire_types::wire_schema;
use crate::sql::{Session, SqlService};

/// Flight SQL on the SQL service.
#[derive(Debug)]
pub(super) struct Service {
    service: Arc<SqlService>,
    sessions: Arc<Sessions>,
    statements: Statements,
}

impl Service {
    pub(super) fn new(service: &Arc<SqlService>, sessions: Arc<Sessions>) -> Self {
        Self {
            service: Arc::clone(service),
            sessions,
            statements: Statements::new(Arc::clone(service)),
        }
    }

    /// The schema of the result of a command.
    async fn schema(&self, session: &Session, command: Command) -> Result<SchemaRef, Status> {
        if let Some(schema) = metadata::schema(&command) {
            return Ok(schema);
        }
        match command {
            Command::CommandStatementQuery(command) => {
                no_transaction(command.transaction_id.as_ref())?;
                let planned = self.statements.plan(session, &command.query).await?;
                Ok(wire_schema(&planned.schema))
            }
            Command::CommandPreparedStatementQuery(command) => {
                let handle = &command.prepared_statement_handle;
                let planned = self.statements.planned(session, handle)?;
                Ok(wire_schema(&planned.schema))
            }
            other => Err(unsupported(&other)),
        }
    }

    /// Executes a DoPut, which binds parameters or runs a statement. Returns the body of the answer.
    async fn put(
        &self,
        session: &Session,
        command: Command,
        messages: BoxStream<'static, Result<FlightData, Status>>,
    ) -> Result<Vec<u8>, Status> {
        let planned = match command {
            Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery {
                prepared_statement_handle: handle,
            }) => {
                let planned = self.statements.planned(session, &handle)?;
                let values = parameters::read(&planned, messages).await?;
                self.statements.bind(session, &handle, values)?;
                let handle = Some(handle);
                let result = DoPutPreparedStatementResult { prepared_statement_handle: handle };
                return Ok(result.encode_to_vec());
            }
            Command::CommandStatementUpdate(CommandStatementUpdate { query, transaction_id }) => {
                no_transaction(transaction_id.as_ref())?;
                self.statements.plan(session, &query).await?
            }
            Command::CommandPreparedStatementUpdate(CommandPreparedStatementUpdate {
                prepared_statement_handle: handle,
            }) => self.statements.planned(session, &handle)?,
            other => return Err(unsupported(&other)),
        };
        let record_count = self.statements.execute(session, planned).await?;
        Ok(DoPutUpdateResult { record_count }.encode_to_vec())
    }
}

/// The error of an unsupported command.
fn unsupported(command: &Command) -> Status {
    match command {
        Command::CommandStatementIngest(_) => Status::unimplemented(
            "bulk ingestion is not supported: send INSERT as a statement, or COPY over the PostgreSQL protocol",
        ),
        Command::CommandStatementSubstraitPlan(_) => Status::unimplemented(NO_SUBSTRAIT),
        other => {
            let text = format!("the command {:.100} is not supported here", other.type_url());
            Status::unimplemented(text)
        }
    }
}

type BoxedStream<T> = Pin<Box<dyn futures::Stream<Item = Result<T, Status>> + Send + 'static>>;

fn answer<T: Send + 'static>(
    messages: impl IntoIterator<Item = T, IntoIter: Send + 'static>,
) -> Response<BoxedStream<T>> {
    Response::new(Box::pin(stream::iter(messages.into_iter().map(Ok))))
}

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = BoxedStream<HandshakeResponse>;
    type ListFlightsStream = BoxedStream<FlightInfo>;
    type DoGetStream = FlightDataStream;
    type DoPutStream = BoxedStream<PutResult>;
    type DoActionStream = BoxedStream<ActionResult>;
    type ListActionsStream = BoxedStream<ActionType>;
    type DoExchangeStream = BoxedStream<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let token = self.sessions.login(&request).await?;
        let payload = Bytes::copy_from_slice(token.as_bytes());
        let mut response = answer([HandshakeResponse { protocol_version: 0, payload }]);
        let header = format!("Bearer {token}").parse().map_err(malformed)?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = self.sessions.session_of(&request).await?;
        let descriptor = request.into_inner();
        let planned = match command(&descriptor.cmd)? {
            Command::CommandStatementQuery(CommandStatementQuery { query, transaction_id }) => {
                no_transaction(transaction_id.as_ref())?;
                self.statements.plan(&session, &query).await?
            }
            Command::CommandPreparedStatementQuery(command) => {
                self.statements.bound(&session, &command.prepared_statement_handle)?
            }
            other => {
                // The command is its own ticket.
                let schema = self.schema(&session, other).await?;
                let ticket = Ticket::new(descriptor.cmd.clone());
                return Ok(Response::new(info_of(&schema, ticket, descriptor)?));
            }
        };
        Ok(Response::new(self.statements.info(&session, planned, descriptor).await?))
    }

    async fn get_schema(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        let session = self.sessions.session_of(&request).await?;
        let schema = self.schema(&session, command(&request.get_ref().cmd)?).await?;
        Ok(Response::new(SchemaResult { schema: schema_bytes(&schema)? }))
    }

    async fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        let session = self.sessions.session_of(&request).await?;
        let rows = match command(&request.get_ref().ticket)? {
            Command::TicketStatementQuery(ticket) => {
                self.statements.fetch(&session, &ticket.statement_handle).await?
            }
            Command::CommandPreparedStatementQuery(command) => {
                let handle = &command.prepared_statement_handle;
                self.statements.fetch_prepared(&session, handle).await?
            }
            other => {
                let error = unsupported(&other);
                let catalogs = self.service.catalogs(&session);
                ready(
                    metadata::rows(other, catalogs.as_ref(), self.statements.has_database())
                        .await?
                        .ok_or(error)?,
                )
            }
        };
        Ok(Response::new(rows))
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let session = self.sessions.session_of(&request).await?;
        let stall_max = self.service.limits().result_stall_max;
        let putting = async {
            let mut messages = request.into_inner();
            let first = messages.message().await?;
            let first = first.ok_or_else(|| malformed("it has no message"))?;
            let descriptor = first.flight_descriptor.as_ref();
            let descriptor = descriptor.ok_or_else(|| malformed("it has no descriptor"))?;
            let command = command(&descriptor.cmd)?;
            let messages = stream::iter([Ok(first)]).chain(messages).boxed();
            self.put(&session, command, messages).await
        };
        let put = tokio::time::timeout(stall_max, putting).await;
        let app_metadata = put.map_err(|_| {
            Status::deadline_exceeded("the messages did not come within `result_stall_max`")
        })??;
        Ok(answer([PutResult { app_metadata: app_metadata.into() }]))
    }

    async fn do_action(
        &self,
        request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        let session = self.sessions.session_of(&request).await?;
        if request.get_ref().r#type == CLOSE_SESSION {
            self.sessions.close(&request)?;
            return Ok(answer([ActionResult { body: session_options::closed() }]));
        }
        let body = actions::run(&self.statements, &session, request.get_ref()).await?;
        Ok(answer(body.map(|body| ActionResult { body })))
    }

    async fn list_actions(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        self.sessions.session_of(&request).await?;
        Ok(answer(actions::types()))
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        self.sessions.session_of(&request).await?;
        Err(Status::unimplemented("there are no flights to list; ask for tables, and send SQL"))
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        self.sessions.session_of(&request).await?;
        Err(Status::unimplemented("results are not polled for; use GetFlightInfo"))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.sessions.session_of(&request).await?;
        Err(Status::unimplemented("data is not exchanged: this server only sends it"))
    }
}
