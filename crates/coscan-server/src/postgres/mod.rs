//! The PostgreSQL protocol.
//!
//! A connection is negotiated and its user logged in (`login`, with `startup_settings`). From then on its `messages` are read (`frame`,
//! `decode`, `reader`) and answered (`connection`, `transactions`), in the `simple` protocol or the `extended` one with `prepared`
//! statements, whose `parameters` have types and `values`. Statements may name portals, too (`connection_statements`,
//! `cursors`), or copy (`copy_statements`, `copy_out`; `copy_in`, `copying` and `copy_rows` for rows that a client sends). Results are sent (`sending`) as `rows` of `wire_types` (`encode`,
//! in one of the `row_forms`) through a `writer`. `arrays` and `numeric` are forms of values. Another connection may
//! `cancel`. Errors have the codes of PostgreSQL (`sqlstate`).

mod arrays;
mod cancel;
mod connection;
mod connection_statements;
mod copy_in;
mod copy_out;
mod copy_rows;
mod copy_statements;
mod copying;
mod cursors;
mod decode;
mod encode;
mod extended;
mod frame;
mod login;
mod messages;
mod numeric;
mod parameters;
mod prepared;
mod reader;
mod row_forms;
mod rows;
mod sending;
mod simple;
mod sqlstate;
mod startup_settings;
mod text_values;
mod transactions;
mod values;
mod wire_types;
mod writer;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus, SecretKey};
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::listen::{
    Accepted, Certificate, ConnectionLimit, MaybeTls, Protocol, serve_connections,
};
use crate::sql::{Session, SqlService};
use cancel::{CancelKeys, Registered};
use connection::Connection;
use frame::ReadError;
use login::{Client, LoginFailure, Negotiated, login, negotiate};
use messages::Messages;
pub use sqlstate::sqlstate;
use sqlstate::{INVALID_AUTHORIZATION, PgError, TOO_MANY_CONNECTIONS};
use writer::Writer;

/// The maximum time for sending a refused client the reason.
const REFUSAL_MAX: Duration = Duration::from_secs(2);

/// The settings that are reported to clients at login.
const REPORTED: [&str; 10] = [
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
    "session_authorization",
];

/// Serves the PostgreSQL protocol.
#[derive(Debug)]
pub struct PostgresServer {
    service: Arc<SqlService>,
    /// The certificate. If there is one, clients must use TLS.
    certificate: Option<Arc<Certificate>>,
    connection_limit: ConnectionLimit,
    keys: Arc<CancelKeys>,
    stopping: CancellationToken,
    stopped: CancellationToken,
}

impl PostgresServer {
    /// Creates a server. Once `stopping` is cancelled, it accepts no connections, and idle ones end. Once `stopped` is,
    /// all end.
    #[must_use]
    pub fn new(
        service: Arc<SqlService>,
        certificate: Option<Arc<Certificate>>,
        connection_limit: ConnectionLimit,
        stopping: CancellationToken,
        stopped: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            service,
            certificate,
            connection_limit,
            keys: Arc::default(),
            stopping,
            stopped,
        })
    }

    /// Accepts connections until the server stops.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let stops = [&self.stopping, &self.stopped];
        serve_connections(
            Protocol::Postgres,
            listener,
            &self.connection_limit,
            stops,
            |accepted| {
                let server = Arc::clone(&self);
                async move { server.connection(accepted).await }
            },
        )
        .await;
    }

    async fn connection(&self, accepted: Accepted) -> io::Result<()> {
        let Accepted { stream, address, place } = accepted;
        let login_max = self.service.limits().login_max;
        let negotiating = negotiate(stream, self.certificate.as_deref());
        let (mut stream, binding, minor, parameters) =
            match tokio::time::timeout(login_max, negotiating).await? {
                Ok(Negotiated::Login { stream, binding, minor, parameters }) => {
                    (stream, binding, minor, parameters)
                }
                Ok(Negotiated::Cancel { pid, secret }) => {
                    self.keys.cancel(pid, &secret);
                    return Ok(());
                }
                Ok(Negotiated::Nothing) => return Ok(()),
                Err(ReadError::Io(error)) => return Err(error),
                Err(ReadError::Protocol(error)) => return Err(io::Error::other(error)),
            };
        if self.certificate.is_some() && !stream.is_secure() {
            let text = "this server requires TLS: set sslmode=verify-full (sslmode=require encrypts, but does not \
                        verify the server)";
            return refuse(stream, &PgError::new(INVALID_AUTHORIZATION, text)).await;
        }
        let (binding, parameters) = (binding.as_deref(), &parameters[..]);
        let client = Client { address: address.ip(), binding, minor, parameters };
        let login = login(&mut stream, &self.service, &client);
        match tokio::time::timeout(login_max, login).await? {
            Ok(session) => match place.admit(&session.user) {
                Ok(()) => self.session(stream, session, minor).await,
                Err(error) => {
                    let error = PgError::new(TOO_MANY_CONNECTIONS, error.to_string());
                    refuse(stream, &error).await
                }
            },
            Err(LoginFailure::Io(error)) => Err(error),
            Err(LoginFailure::Refused(error)) => {
                log::info!(address:%; "login refused: {}", error.text);
                refuse(stream, &error).await
            }
        }
    }

    async fn session(&self, stream: MaybeTls, session: Session, minor: i32) -> io::Result<()> {
        let limits = self.service.limits();
        let bytes_max = usize::try_from(limits.message_bytes_max).unwrap_or(usize::MAX);
        let (reading, writing) = tokio::io::split(stream);
        let mut writer = Writer::new(writing, limits.result_stall_max);
        let registered = self.keys.register(minor);
        let registered = registered.ok_or_else(|| io::Error::other("there are no random bytes"))?;
        greet(&mut writer, &session, &registered, minor)?;
        let messages = Messages::of(reading, bytes_max);
        let mut connection =
            Connection::new(Arc::clone(&self.service), session, writer, registered);
        connection.ready().await?;
        connection.run(messages, &self.stopping).await
    }
}

/// The messages to a client after its login.
fn greet(
    writer: &mut Writer<impl AsyncWrite + Unpin>,
    session: &Session,
    registered: &Registered,
    minor: i32,
) -> io::Result<()> {
    writer.add(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
    let settings = session.settings();
    for name in REPORTED {
        let value = settings.get(name, &session.user).map_err(io::Error::other)?;
        let status = ParameterStatus::new(name.to_owned(), value);
        writer.add(&PgWireBackendMessage::ParameterStatus(status))?;
    }
    let secret = match <[u8; 4]>::try_from(registered.secret.as_ref()) {
        Ok(secret) if minor < 2 => SecretKey::I32(i32::from_be_bytes(secret)),
        _ => SecretKey::Bytes(registered.secret.clone()),
    };
    let key = BackendKeyData::new(registered.pid, secret);
    writer.add(&PgWireBackendMessage::BackendKeyData(key))
}

/// Sends a client the reason why it is refused, and closes the connection.
async fn refuse(stream: impl AsyncWrite + Unpin, error: &PgError) -> io::Result<()> {
    let mut writer = Writer::new(stream, REFUSAL_MAX);
    writer.add(&error.message("FATAL"))?;
    tokio::time::timeout(REFUSAL_MAX, writer.close()).await?
}
