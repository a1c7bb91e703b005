//! The network in front of a worker, which a test can hold up and cut.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The state of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Works,
    /// Nothing arrives, and no connection ends.
    Stopped,
    /// New connections are refused. This is the last state.
    Gone,
}

/// Forwards connections to a worker.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    network: watch::Sender<Network>,
    /// Changes when all connections are cut.
    cuts: watch::Sender<usize>,
}

impl Proxy {
    pub(super) async fn start(worker: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (network, cuts) = (watch::Sender::new(Network::Works), watch::Sender::new(0));
        let (states, cut) = (network.subscribe(), cuts.subscribe());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if *states.borrow() != Network::Gone {
                    tokio::spawn(forward(client, worker, states.clone(), cut.clone()));
                }
            }
        });
        Self { address, network, cuts }
    }

    /// Ends all connections. New ones work.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Lets nothing through any more, until it goes on.
    pub(super) fn stop(&self) {
        self.network.send_replace(Network::Stopped);
    }

    /// Lets everything through that has waited.
    pub(super) fn go_on(&self) {
        self.network.send_if_modified(|network| {
            let is_stopped = *network == Network::Stopped;
            *network = if is_stopped { Network::Works } else { *network };
            is_stopped
        });
    }

    /// Ends all connections for ever.
    pub(super) fn remove(&self) {
        self.network.send_replace(Network::Gone);
        self.cut();
    }
}

async fn forward(
    client: TcpStream,
    worker: SocketAddr,
    network: watch::Receiver<Network>,
    mut cuts: watch::Receiver<usize>,
) {
    cuts.mark_unchanged();
    let Ok(worker) = TcpStream::connect(worker).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_worker, to_worker) = worker.into_split();
    tokio::select! {
        () = copy(from_client, to_worker, network.clone()) => {}
        () = copy(from_worker, to_client, network) => {}
        _ = cuts.changed() => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut network: watch::Receiver<Network>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer).await {
        let passes = network.wait_for(|network| *network != Network::Stopped).await.is_ok();
        if count == 0 || !passes || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
