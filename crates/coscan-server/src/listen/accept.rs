//! Accepts connections, and ends connections that must leave or whose clients have vanished.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{ConnectionLimit, CountedStream, Place, Protocol};

/// The pause when the system accepts no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An accepted connection, with its address.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: CountedStream,
    /// The address of the client.
    pub address: SocketAddr,
    /// The place of the connection among all connections. The protocol that serves it admits the user who logs in.
    pub place: Arc<Place>,
}

/// The times and the number of keep-alive probes to a silent client. The connection is closed after two minutes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 4;

/// Accepts connections until `stopping` is cancelled. Later ones are refused. Each connection is served in a task of
/// its own, until it ends, must make place for others, or `stopped` is cancelled.
pub async fn serve_connections<S>(
    protocol: Protocol,
    listener: TcpListener,
    connection_limit: &ConnectionLimit,
    [stopping, stopped]: [&CancellationToken; 2],
    serve: impl Fn(Accepted) -> S,
) where
    S: Future<Output = io::Result<()>> + Send + 'static,
{
    while let Some(accepted) = accept(protocol, &listener, connection_limit, stopping).await {
        let (address, stopped) = (accepted.address, stopped.clone());
        let place = Arc::clone(&accepted.place);
        let serving = serve(accepted);
        tokio::spawn(async move {
            let served = tokio::select! {
                () = stopped.cancelled() => return,
                () = place.must_leave() => return,
                served = serving => served,
            };
            if let Err(error) = served {
                let protocol = protocol.name();
                log::debug!("the {protocol} connection of {address} ended: {error}");
            }
        });
    }
}

/// The next connection, or `None` once the server stops.
async fn accept(
    protocol: Protocol,
    listener: &TcpListener,
    connection_limit: &ConnectionLimit,
    stopping: &CancellationToken,
) -> Option<Accepted> {
    loop {
        let accepted = tokio::select! {
            () = stopping.cancelled() => return None,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                prepare(&stream);
                let stream = connection_limit.sent().counting(protocol, stream);
                let place = Arc::new(connection_limit.enter(address.ip()));
                return Some(Accepted { stream, address, place });
            }
            // Too many files are open, or the client has disconnected already.
            Err(error) => {
                log::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Sets the options of a connection. Connections also work if that fails.
fn prepare(stream: &TcpStream) {
    stream.set_nodelay(true).ok(); // Answers are written whole.
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER);
    #[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "solaris")))]
    let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_RETRIES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive).ok();
}
