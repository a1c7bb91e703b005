//! Connections to workers.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coscan_transport::MutualTls;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, WorkerChannel};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::Endpoint;
use url::Url;

use super::connection::Connection;

/// The time to connect, with the handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The interval of keep-alive pings, also of idle connections. A worker that disappears without closing its connections is
/// noticed by them alone.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(1);

/// The time for the answer to a ping.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// The bytes that may be under way on a connection. All queries share it, so those whose rows nobody takes must not use it up;
/// each stream has a window of its own.
const WINDOW_BYTES: u32 = (1 << 31) - 1;

/// The bytes that may be under way on a stream, of which each exchange of a query has one for each two workers. They are not
/// counted, so there are few.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;

/// The most bytes of headers and trailers, in which settings and errors travel.
pub(super) const HEADER_BYTES_MAX: u32 = 16 << 20;

/// How servers of a cluster authenticate each other.
#[derive(Clone, Debug)]
pub enum Security {
    /// By certificates of one authority, on both sides.
    MutualTls(MutualTls),
    /// Not at all. Whoever reaches a worker can execute plans in it, so it is for loopback addresses only.
    None,
}

/// Connections to workers, each of which is made when it is first used, and made again when it has failed.
#[derive(Debug)]
pub struct Connections {
    security: Security,
    /// The runtime that answers pings. Operators must not keep its threads busy.
    runtime: Option<Handle>,
    channels: Mutex<BTreeMap<Url, BoxCloneSyncChannel>>,
}

impl Connections {
    /// No connections yet. The tokio runtime here, if there is one, will drive them, so that its threads must be free of operators: a
    /// server whose pings are not answered is taken for lost.
    #[must_use]
    pub fn new(security: Security) -> Self {
        Self { security, runtime: Handle::try_current().ok(), channels: Mutex::default() }
    }

    fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(url) {
            return Ok(channel.clone());
        }
        let _drives = self.runtime.as_ref().map(Handle::enter);
        let channel = connect_lazily(url, &self.security)?;
        channels.insert(url.clone(), channel.clone());
        Ok(channel)
    }
}

#[async_trait]
impl ChannelResolver for Connections {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        Ok(create_worker_client(self.channel(url)?))
    }
}

fn connect_lazily(url: &Url, security: &Security) -> Result<BoxCloneSyncChannel> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(exec_datafusion_err!("the address {url} of a worker has no host and port"));
    };
    let endpoint = Endpoint::from_shared(url.to_string())
        .map_err(|error| exec_datafusion_err!("the address {url} of a worker is wrong: {error}"))?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_connection_window_size(WINDOW_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true);
    // Addresses of IPv6 are in brackets there.
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let security = security.clone();
    let connector = tower::service_fn(move |_| {
        let (host, security) = (host.clone(), security.clone());
        async move {
            let connecting = tokio::time::timeout(CONNECT_TIMEOUT, connect(&host, port, &security));
            connecting
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                .map(TokioIo::new)
        }
    });
    Ok(BoxCloneSyncChannel::new(endpoint.connect_with_connector_lazy(connector)))
}

async fn connect(host: &str, port: u16, security: &Security) -> io::Result<Connection> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let Security::MutualTls(tls) = security else { return Ok(Connection::new(stream)) };
    let name = match &tls.name {
        Some(name) => name.clone(),
        None => ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
    };
    let connector = TlsConnector::from(Arc::clone(&tls.client));
    Ok(Connection::new(connector.connect(name, stream).await?))
}
