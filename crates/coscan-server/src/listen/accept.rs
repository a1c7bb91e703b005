//! Accepts connections, up to a limit.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{CountedStream, Protocol, SentBytes};

/// How long to wait when the system accepts no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The connections of all protocols.
#[derive(Clone, Debug)]
pub struct Gate {
    free: Arc<Semaphore>,
    connections_max: u32,
    sent: SentBytes,
}

/// A connection that is counted, until this is dropped.
#[derive(Debug)]
pub struct ConnectionPermit(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

impl Gate {
    /// A gate for this many connections at once.
    #[must_use]
    pub fn new(connections_max: usize) -> Self {
        let connections_max = u32::try_from(connections_max).unwrap_or(u32::MAX).min(1 << 28);
        let free = Arc::new(Semaphore::new(connections_max as usize));
        Self { free, connections_max, sent: SentBytes::default() }
    }

    /// Counts a connection; `None` if there are too many.
    #[must_use]
    pub fn enter(&self) -> Option<ConnectionPermit> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(ConnectionPermit)
    }

    /// The limit on connections.
    #[must_use]
    pub fn connections_max(&self) -> usize {
        self.connections_max as usize
    }

    /// The number of connections now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections_max().saturating_sub(self.free.available_permits())
    }

    /// What was sent over all connections.
    #[must_use]
    pub fn sent(&self) -> &SentBytes {
        &self.sent
    }

    /// Completes once there is no connection.
    pub async fn emptied(&self) {
        // It is never closed.
        drop(self.free.acquire_many(self.connections_max).await);
    }
}

/// A connection, and the address it comes from.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: CountedStream,
    /// Where it comes from.
    pub address: SocketAddr,
    /// Counts the connection; `None` if there are too many, so that the client can be told.
    pub permit: Option<ConnectionPermit>,
}

/// Accepts connections until `stopping` is cancelled; from then on they are refused. Each is served in a task of its own,
/// until it ends or `stopped` is cancelled.
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
        let serving = serve(accepted);
        tokio::spawn(async move {
            let served = tokio::select! {
                () = stopped.cancelled() => return,
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
                // Answers are written whole.
                stream.set_nodelay(true).ok();
                let stream = gate.sent.counting(protocol, stream);
                return Some(Accepted { stream, address, permit: gate.enter() });
            }
            // Too many files are open, or the client has gone already.
            Err(error) => {
                log::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
