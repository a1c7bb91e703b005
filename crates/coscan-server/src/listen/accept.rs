//! Accepts connections, and ends those that must leave or whose clients have vanished.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{CountedStream, Gate, Place, Protocol};

/// How long to wait when the system accepts no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection, and the address it comes from.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: CountedStream,
    /// Where it comes from.
    pub address: SocketAddr,
    /// Its place among all connections. Whoever serves it admits the user who logs in.
    pub place: Arc<Place>,
}

/// When the system asks a silent client whether it is there, how often, and when it gives up: after two minutes.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 4;

/// Accepts connections until `stopping` is cancelled; from then on they are refused. Each is served in a task of its own,
/// until it ends, must make place for others, or `stopped` is cancelled.
pub async fn serve_connections<S>(
    protocol: Protocol,
    listener: TcpListener,
    gate: &Gate,
    [stopping, stopped]: [&CancellationToken; 2],
    serve: impl Fn(Accepted) -> S,
) where
    S: Future<Output = io::Result<()>> + Send + 'static,
{
    while let Some(accepted) = accept(protocol, &listener, gate, stopping).await {
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

/// The next connection; `None` once the server stops.
async fn accept(
    protocol: Protocol,
    listener: &TcpListener,
    gate: &Gate,
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
                let stream = gate.sent().counting(protocol, stream);
                let place = Arc::new(gate.enter(address.ip()));
                return Some(Accepted { stream, address, place });
            }
            // Too many files are open, or the client has gone already.
            Err(error) => {
                log::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Sets what all connections have. Without it they work, too.
fn prepare(stream: &TcpStream) {
    stream.set_nodelay(true).ok(); // Answers are written whole.
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER);
    #[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "solaris")))]
    let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_RETRIES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive).ok();
}
