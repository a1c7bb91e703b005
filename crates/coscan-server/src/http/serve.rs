//! Serves the dashboard: connections, TLS, shutdown.

use std::future::ready;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::Extension;
use axum::middleware::{from_fn_with_state, map_response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::access::{Access, Peer, require_administrator, require_user};
use super::cookie::Cookies;
use super::{DashboardState, headers, metrics_routes, probe_routes, watch_routes};
use crate::config::Http;
use crate::listen::{
    Accepted, Certificate, ConnectionLimit, MaybeTls, Protocol, StallLimit, serve_connections,
};
use crate::sql::SqlService;

/// The protocol in the ALPN extension of TLS.
const ALPN: &[u8] = b"http/1.1";

/// The maximum length of the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Serves the dashboard over HTTP.
#[derive(Debug)]
pub struct HttpServer {
    service: Arc<SqlService>,
    state: DashboardState,
    pages: Router,
    /// The certificate. If there is one, clients must use TLS.
    certificate: Option<Arc<Certificate>>,
    connection_limit: ConnectionLimit,
    stopping: CancellationToken,
    stopped: CancellationToken,
}

impl HttpServer {
    /// Creates a server that is ready from now on.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    ///
    /// # Panics
    /// If there is no tokio runtime here.
    pub fn new(
        service: Arc<SqlService>,
        settings: Http,
        certificate: Option<Arc<Certificate>>,
        connection_limit: ConnectionLimit,
    ) -> io::Result<Arc<Self>> {
        let state = DashboardState::of_server(Arc::clone(&service), connection_limit.clone());
        let cookies = Cookies::new(certificate.is_some());
        let cookies =
            cookies.ok_or_else(|| io::Error::other("the system gives no random bytes"))?;
        let access = Access {
            service: Arc::clone(&service),
            cookies: Arc::new(cookies),
            local_metrics: settings.local_metrics,
        };
        let pages = pages(&state, access, settings.local_frames);
        let (stopping, stopped) = (CancellationToken::new(), CancellationToken::new());
        Ok(Arc::new(Self {
            service,
            state,
            pages,
            certificate,
            connection_limit,
            stopping,
            stopped,
        }))
    }

    /// Accepts connections until the server stops.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let stops = [&self.stopping, &self.stopped];
        serve_connections(Protocol::Http, listener, &self.connection_limit, stops, |accepted| {
            let server = Arc::clone(&self);
            async move { server.connection(accepted).await }
        })
        .await;
    }

    /// Makes `/readyz` answer that no queries are accepted. Everything else is served as before.
    pub fn set_unready(&self) {
        self.state.set_ready(false);
    }

    /// Accepts no more connections. Open ones end after their current answer, and all feeds end.
    pub fn stop(&self) {
        self.state.stop();
        self.stopping.cancel();
    }

    /// Ends all connections.
    pub fn end(&self) {
        self.stopped.cancel();
    }

    async fn connection(&self, accepted: Accepted) -> io::Result<()> {
        let Accepted { stream, address, place } = accepted;
        let limits = self.service.limits();
        let stream = match &self.certificate {
            None => MaybeTls::Plain(stream),
            Some(certificate) => {
                let acceptor = TlsAcceptor::from(certificate.for_protocols(&[ALPN]).0);
                let accepting = tokio::time::timeout(limits.login_max, acceptor.accept(stream));
                MaybeTls::Tls(Box::new(accepting.await??))
            }
        };
        let stream = TokioIo::new(StallLimit::new(stream, limits.result_stall_max));
        let pages = self.pages.clone().layer(Extension(Peer { address, place }));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.login_max)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(stream, TowerToHyperService::new(pages));
        let mut served = std::pin::pin!(served);
        tokio::select! {
            ended = served.as_mut() => return ended.map_err(io::Error::other),
            () = self.stopping.cancelled() => served.as_mut().graceful_shutdown(),
        }
        served.await.map_err(io::Error::other)
    }
}

/// All routes, each with its access control.
fn pages(state: &DashboardState, access: Access, local_frames: bool) -> Router {
    let watching = watch_routes(state.clone())
        .route_layer(from_fn_with_state(access.clone(), require_administrator));
    let numbers =
        metrics_routes(state.clone()).route_layer(from_fn_with_state(access, require_user));
    let pages = probe_routes(state.clone()).merge(watching).merge(numbers);
    pages.layer(map_response(move |response| ready(headers::add(response, local_frames))))
}
