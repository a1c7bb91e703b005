//! Actions: prepared statements, cancelling queries, options of sessions, logout.

use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, Any, Command, ProstMessageExt,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo,
};
use bytes::Bytes;
use prost::Message;
use tonic::Status;

use crate::flight::command;
use crate::flight::session_options;
use crate::flight::statements::Statements;
use crate::flight::status::malformed;
use crate::sql::Session;

const CREATE_PREPARED_STATEMENT: &str = "CreatePreparedStatement";
const CLOSE_PREPARED_STATEMENT: &str = "ClosePreparedStatement";
const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";
const CANCEL_QUERY: &str = "CancelQuery";
const SET_SESSION_OPTIONS: &str = "SetSessionOptions";
const GET_SESSION_OPTIONS: &str = "GetSessionOptions";
/// Ends the session of the token, which the service does.
pub(super) const CLOSE_SESSION: &str = "CloseSession";

/// The answer of the deprecated cancel action for a cancelled query.
const QUERY_CANCELLED: i32 = 1;

/// All actions.
pub(super) fn types() -> Vec<ActionType> {
    let actions = [
        (CREATE_PREPARED_STATEMENT, "prepares a statement"),
        (CLOSE_PREPARED_STATEMENT, "forgets a prepared statement"),
        (CANCEL_FLIGHT_INFO, "cancels a query"),
        (CANCEL_QUERY, "cancels a query; deprecated in favour of CancelFlightInfo"),
        (SET_SESSION_OPTIONS, "changes settings, as SET does"),
        (GET_SESSION_OPTIONS, "returns all settings, as SHOW ALL does"),
        (CLOSE_SESSION, "forgets the token of the call"),
    ];
    let action = |(name, description): (&str, &str)| ActionType {
        r#type: name.to_owned(),
        description: description.to_owned(),
    };
    actions.map(action).to_vec()
}

/// Executes an action. Returns the body of its answer, if it has one.
pub(super) async fn run(
    statements: &Statements,
    session: &Session,
    action: &Action,
) -> Result<Option<Bytes>, Status> {
    match action.r#type.as_str() {
        CREATE_PREPARED_STATEMENT => {
            let request: ActionCreatePreparedStatementRequest = unpack(&action.body)?;
            no_transaction(request.transaction_id.as_ref())?;
            let prepared = statements.prepare(session, &request.query).await?;
            Ok(Some(prepared.as_any().encode_to_vec().into()))
        }
        CLOSE_PREPARED_STATEMENT => {
            let request: ActionClosePreparedStatementRequest = unpack(&action.body)?;
            statements.close(session, &request.prepared_statement_handle);
            Ok(None)
        }
        CANCEL_FLIGHT_INFO => {
            let request = CancelFlightInfoRequest::decode(&*action.body).map_err(malformed)?;
            cancel(statements, session, request.info)?;
            let result = CancelFlightInfoResult::new(CancelStatus::Cancelled);
            Ok(Some(result.encode_to_vec().into()))
        }
        CANCEL_QUERY => {
            let request: ActionCancelQueryRequest = unpack(&action.body)?;
            let info = FlightInfo::decode(request.info).map_err(malformed)?;
            cancel(statements, session, Some(info))?;
            let result = ActionCancelQueryResult { result: QUERY_CANCELLED };
            Ok(Some(result.as_any().encode_to_vec().into()))
        }
        SET_SESSION_OPTIONS => Ok(Some(session_options::set(session, &action.body)?)),
        GET_SESSION_OPTIONS => Ok(Some(session_options::get(session))),
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            Err(Status::unimplemented(
                "the protocol's own transactions are not supported: send BEGIN as a statement",
            ))
        }
        "CreatePreparedSubstraitPlan" => Err(Status::unimplemented(NO_SUBSTRAIT)),
        other => {
            let text = format!("there is no action {other:.100}; ListActions lists them");
            Err(Status::unimplemented(text))
        }
    }
}

pub(super) const NO_SUBSTRAIT: &str = "Substrait plans are not supported; send SQL";

/// Refuses statements within a transaction.
pub(super) fn no_transaction(id: Option<&Bytes>) -> Result<(), Status> {
    match id {
        None => Ok(()),
        Some(id) if id.is_empty() => Ok(()),
        Some(_) => Err(Status::unimplemented(
            "the protocol's own transactions are not supported: send BEGIN as a statement",
        )),
    }
}

fn unpack<M: ProstMessageExt>(body: &[u8]) -> Result<M, Status> {
    let any = Any::decode(body).map_err(malformed)?;
    let message = any.unpack().map_err(malformed)?;
    message.ok_or_else(|| malformed("it is of another type than the action"))
}

/// Cancels the query of a ticket. Cancelling it again is not an error.
fn cancel(
    statements: &Statements,
    session: &Session,
    info: Option<FlightInfo>,
) -> Result<(), Status> {
    let endpoints = info.unwrap_or_default().endpoint;
    let ticket = endpoints.into_iter().find_map(|endpoint| endpoint.ticket);
    let ticket = ticket.ok_or_else(|| malformed("it has no ticket"))?;
    match command(&ticket.ticket)? {
        Command::TicketStatementQuery(ticket) => {
            statements.cancel(session, &ticket.statement_handle)
        }
        _ => Err(malformed("the ticket is not that of a query")),
    }
}
