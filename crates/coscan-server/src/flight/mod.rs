//! Arrow Flight SQL.
//!
//! A `connection` is counted and encrypted; `sessions` authenticate its calls. The `service` answers them:
//! `statements` are planned, prepared with `parameters` (`placeholders`) and run, and their `results` streamed in types that every
//! client can read (`wire_types`); `actions` cancel them and change `session_options`; `metadata` and `server_info` describe
//! the tables and the server. Values that clients refer to later are kept under `handles`. Errors have the codes of
//! gRPC (`status`).

mod actions;
mod connection;
mod handles;
mod metadata;
mod parameters;
mod placeholders;
mod results;
mod server_info;
mod service;
mod session_options;
mod sessions;
mod statements;
mod status;
mod wire_types;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use arrow_flight::sql::{Any, Command};
use futures::{StreamExt, stream};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Status};

use crate::listen::{Certificate, ConnectionLimit, Protocol, serve_connections};
use crate::sql::SqlService;
use connection::Connection;
use service::Service;
use sessions::Sessions;
use status::malformed;

/// The maximum number of concurrent calls of a connection.
const STREAMS_MAX: u32 = 128;

/// The interval of keep-alive pings.
const PING_INTERVAL: Duration = Duration::from_secs(60);

/// Serves Arrow Flight SQL.
#[derive(Debug)]
pub struct FlightServer {
    service: Arc<SqlService>,
    /// The certificate. If there is one, clients must use TLS.
    certificate: Option<Arc<Certificate>>,
    connection_limit: ConnectionLimit,
    stopping: CancellationToken,
    stopped: CancellationToken,
}

impl FlightServer {
    /// Creates a server. Once `stopping` is cancelled, it accepts no connections and no calls. Once `stopped` is, all
    /// connections end.
    #[must_use]
    pub fn new(
        service: Arc<SqlService>,
        certificate: Option<Arc<Certificate>>,
        connection_limit: ConnectionLimit,
        stopping: CancellationToken,
        stopped: CancellationToken,
    ) -> Self {
        Self { service, certificate, connection_limit, stopping, stopped }
    }

    /// Accepts connections until the server stops, and serves them until they end.
    pub async fn serve(self, listener: TcpListener) {
        let limits = self.service.limits();
        let message_bytes_max = usize::try_from(limits.message_bytes_max).unwrap_or(usize::MAX);
        let sessions = Arc::new(Sessions::new(Arc::clone(&self.service)));
        let service = FlightServiceServer::new(Service::new(&self.service, Arc::clone(&sessions)))
            .max_decoding_message_size(message_bytes_max);
        let service = InterceptedService::new(service, move |request: Request<()>| {
            sessions.check(&request).map(|()| request)
        });
        let (connected, mut connections) = mpsc::channel(1);
        let connections = stream::poll_fn(move |context| connections.poll_recv(context));
        let serving = Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .http2_keepalive_interval(Some(PING_INTERVAL))
            // Clients that read slowly do not answer pings while they do not read.
            .http2_keepalive_timeout(Some(limits.result_stall_max))
            .add_service(service)
            .serve_with_incoming_shutdown(
                connections.map(Ok::<_, Infallible>),
                self.stopping.clone().cancelled_owned(),
            );
        let (served, ()) = tokio::join!(serving, self.accept(listener, &connected));
        if let Err(error) = served {
            log::error!("Flight SQL is not served any more: {error}");
        }
    }

    async fn accept(&self, listener: TcpListener, connected: &mpsc::Sender<Connection>) {
        let stops = [&self.stopping, &self.stopped];
        serve_connections(Protocol::Flight, listener, &self.connection_limit, stops, |accepted| {
            let (certificate, stopped) = (self.certificate.clone(), self.stopped.clone());
            let (connected, login_max) = (connected.clone(), self.service.limits().login_max);
            async move {
                let certificate = certificate.as_deref();
                let connection = Connection::new(accepted, certificate, login_max, stopped).await?;
                let sent = connected.send(connection).await;
                sent.map_err(|_| io::ErrorKind::ConnectionAborted.into())
            }
        })
        .await;
    }
}

/// The command in a message.
fn command(bytes: &[u8]) -> Result<Command, Status> {
    Command::try_from(Any::decode(bytes).map_err(malformed)?).map_err(malformed)
}
