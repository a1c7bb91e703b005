//! All connections of a server to those that it shares with.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use coscan_runtime::ring::NodeId;
use coscan_runtime::{BufferManager, Cluster, ClusterOptions, Network, Outgoing};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::credentials::{Credentials, CredentialsError};
use crate::incoming::accept;
use crate::node_id::node_id;
use crate::outgoing::Link;

/// With whom a server shares.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// The address by which the others know this server, `host:port`. All MUST use the same text for a server.
    pub address: String,
    /// The addresses of the others. The address of this server may be among them.
    pub peers: Vec<String>,
    /// What makes it one of them.
    pub credentials: Credentials,
}

/// Why a server cannot share.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Its credentials are of no use.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The manager shares already.
    #[error("the buffer manager shares with other servers already")]
    SharesAlready,
}

/// Another server, as it is reached from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// Its address.
    pub address: String,
    /// Whether there is a connection to it.
    pub is_connected: bool,
    /// Bytes that were sent to it, all messages and pages.
    pub bytes_sent: u64,
}

/// The connections of a server. When it is dropped they end.
#[derive(Debug)]
pub struct Transport {
    links: Arc<Links>,
    cluster: Arc<Cluster>,
    stopping: CancellationToken,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Links {
    by_node: BTreeMap<NodeId, Link>,
    /// Held while the cluster is told who is reachable: what it is told last is true.
    telling: Mutex<()>,
}

impl Network for Links {
    fn send(&self, message: Outgoing) {
        if let Some(link) = self.by_node.get(&message.to) {
            link.send(message);
        }
    }
}

impl Transport {
    /// Shares what a manager reads with other servers from now on, on the tokio runtime of the caller. The others connect to
    /// `listener`. Tables have to be registered after that.
    ///
    /// # Errors
    /// If credentials are of no use, or the manager shares already.
    pub fn start(
        listener: TcpListener,
        config: TransportConfig,
        manager: &BufferManager,
        options: ClusterOptions,
    ) -> Result<Self, TransportError> {
        let TransportConfig { address: own, peers, credentials } = config;
        let tls = credentials.load()?;
        let (mut by_node, mut queues) = (BTreeMap::new(), Vec::new());
        for peer in peers.into_iter().filter(|peer| *peer != own) {
            let (link, queue) = Link::new(peer.clone());
            by_node.insert(node_id(&peer), link);
            queues.push((peer, queue));
        }
        let links = Arc::new(Links { by_node, telling: Mutex::default() });
        let network = Arc::clone(&links) as Arc<dyn Network>;
        let cluster = manager.join_cluster(node_id(&own), incarnation(), options, network);
        let cluster = Arc::new(cluster.ok_or(TransportError::SharesAlready)?);
        let (stopping, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.server));
        tasks.spawn(accept(listener, acceptor, Arc::clone(&cluster), stopping.clone()));
        for (peer, queue) in queues {
            let (links, cluster) = (Arc::clone(&links), Arc::clone(&cluster));
            let (own, tls) = (own.clone(), tls.clone());
            tasks.spawn(async move {
                queue.run(&own, &peer, &tls, || links.tell(&cluster)).await;
            });
        }
        Ok(Self { links, cluster, stopping, _tasks: tasks })
    }

    /// What is shared.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The others.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerState> {
        let state = |link: &Link| PeerState {
            address: link.address.clone(),
            is_connected: link.state().is_up.load(Ordering::Acquire),
            bytes_sent: link.state().bytes_sent.load(Ordering::Relaxed),
        };
        self.links.by_node.values().map(state).collect()
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.cluster.leave();
    }
}

impl Links {
    /// Tells the cluster who is reachable.
    fn tell(&self, cluster: &Cluster) {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let up = self.by_node.iter().filter(|(_, link)| link.state().is_up.load(Ordering::Acquire));
        cluster.set_members(up.map(|(&node, _)| node));
    }
}

/// Seconds since 1970. Two starts within a second have the same number: of the first one nothing is left then, as its
/// connections are closed.
fn incarnation() -> u32 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_secs() as u32
}
