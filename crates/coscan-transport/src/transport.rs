//! All connections of a server to those that it shares with.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use coscan_runtime::ring::{Member, NodeId, Share};
use coscan_runtime::{BufferManager, Cluster, ClusterOptions, Network};
use tokio::net::TcpListener;
use twox_hash::XxHash64;

use crate::credentials::{Credentials, CredentialsError};
use crate::incoming::accept;
use crate::link::LinkStatus;
use crate::links::{LinkState, Links};
use crate::members::Members;
use crate::node_id::node_id;
use crate::seeds::Seeds;

/// The settings of a server's connections to those that it shares with.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// The address by which the others know this server and reach it, `host:port`. No two servers have the same.
    pub address: String,
    /// Addresses at which others are found, from which it learns of all. The address of this server may be among them,
    /// and a name may stand for several servers.
    pub join: Vec<String>,
    /// The zone of this server. It shares with servers of the same zone.
    pub zone: String,
    /// The credentials by which it is one of them.
    pub credentials: Credentials,
}

/// The reason why a server cannot share.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Its credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The manager shares already.
    #[error("the buffer manager shares with other servers already")]
    SharesAlready,
}

/// The state of a server, as it is seen from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// Its address.
    pub address: String,
    /// Its zone, once that is known.
    pub zone: Option<String>,
    /// The relation between the two servers.
    pub status: PeerStatus,
    /// Its share of the files that are shared here.
    pub share: Share,
    /// Bytes of pages that were sent to it since it was met.
    pub bytes_sent: u64,
    /// Bytes of pages that came from it since it was met.
    pub bytes_received: u64,
}

/// The relation between this server and another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerStatus {
    /// The server is this one.
    ThisServer,
    /// Each of the two reads for the other.
    Sharing,
    /// The two have just connected.
    Joining,
    /// It is in another zone: it is known, but nothing is shared with it.
    OtherZone,
    /// It shares other stores, or only one of the two circulates pages: nothing is shared with it.
    OtherStores,
    /// It is reached, but does not reach this server.
    OneWay,
    /// It is not reached.
    Unreachable,
}

impl PeerStatus {
    /// The status in one or two words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ThisServer => "this server",
            Self::Sharing => "sharing",
            Self::Joining => "joining",
            Self::OtherZone => "other zone",
            Self::OtherStores => "other stores",
            Self::OneWay => "one-way",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The connections of a server. They end when it is dropped.
#[derive(Debug)]
pub struct Transport {
    members: Arc<Members>,
    seeds: Arc<Seeds>,
}

impl Transport {
    /// Shares what a manager reads with other servers from now on, on the tokio runtime of the caller. The others
    /// connect to `listener`. Tables have to be registered after that.
    ///
    /// # Errors
    /// If credentials cannot be used, or the manager shares already.
    pub fn start(
        listener: TcpListener,
        config: TransportConfig,
        manager: &BufferManager,
        options: ClusterOptions,
    ) -> Result<Self, TransportError> {
        let TransportConfig { address, join, zone, credentials } = config;
        let tls = credentials.load()?;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let incarnation = u64::try_from(started.as_millis()).unwrap_or_default();
        let own = Member { address, incarnation, zone, stores: digest(&options) };
        let links = Arc::<Links>::default();
        let network = Arc::clone(&links) as Arc<dyn Network>;
        let id = node_id(&own.address);
        let cluster = manager.join_cluster(id, incarnation, options, network);
        let cluster = Arc::new(cluster.ok_or(TransportError::SharesAlready)?);
        let seed = RandomState::new().hash_one(&own.address);
        let seeds = Seeds::new(join.into_iter().filter(|seed| *seed != own.address).collect());
        let seeds = Arc::new(seeds);
        let members = Arc::new(Members::new(own, seed, tls, links, cluster));
        tokio::spawn(accept(listener, Arc::clone(&members)));
        tokio::spawn(Arc::clone(&members).keep_time());
        for seed in seeds.addresses() {
            let (seeds, members) = (Arc::clone(&seeds), Arc::clone(&members));
            tokio::spawn(async move {
                members.stopping.run_until_cancelled(seeds.find(&seed, &members)).await;
            });
        }
        Ok(Self { members, seeds })
    }

    /// The cluster of servers that share.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.members.cluster
    }

    /// This server, as the others know it. It sends nothing to itself.
    fn own(&self) -> PeerState {
        let (Member { address, zone, .. }, _) = self.members.alive();
        let share = share_of(&self.cluster().shares(), &address);
        let (zone, status) = (Some(zone), PeerStatus::ThisServer);
        PeerState { address, zone, status, share, bytes_sent: 0, bytes_received: 0 }
    }

    /// This server, then the others, by address.
    #[must_use]
    pub fn nodes(&self) -> Vec<PeerState> {
        std::iter::once(self.own()).chain(self.peers()).collect()
    }

    /// The others, by address.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerState> {
        let (own, alive) = self.members.alive();
        let alive: BTreeMap<_, _> =
            alive.into_iter().map(|member| (member.address.clone(), member)).collect();
        let shares = self.cluster().shares();
        let peer = |link: LinkState| {
            let member = alive.get(&link.address);
            PeerState {
                share: share_of(&shares, &link.address),
                zone: member.map(|member| member.zone.clone()),
                status: status_of(link.status, member, &own),
                bytes_sent: link.bytes_sent,
                bytes_received: link.bytes_received,
                address: link.address,
            }
        };
        let sought = self.seeds.sought().into_iter().map(|address| PeerState {
            address,
            zone: None,
            status: PeerStatus::Unreachable,
            share: Share::default(),
            bytes_sent: 0,
            bytes_received: 0,
        });
        let peers = sought.chain(self.members.links.states().into_iter().map(peer));
        let peers = peers.map(|peer| (peer.address.clone(), peer));
        peers.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}

fn status_of(link: LinkStatus, member: Option<&Member>, own: &Member) -> PeerStatus {
    match (link, member) {
        (LinkStatus::Down, _) => PeerStatus::Unreachable,
        (LinkStatus::OneWay, _) => PeerStatus::OneWay,
        (LinkStatus::Up, None) => PeerStatus::Joining,
        (LinkStatus::Up, Some(member)) if member.zone != own.zone => PeerStatus::OtherZone,
        (LinkStatus::Up, Some(member)) if member.stores != own.stores => PeerStatus::OtherStores,
        (LinkStatus::Up, Some(_)) => PeerStatus::Sharing,
    }
}

fn share_of(shares: &BTreeMap<NodeId, Share>, address: &str) -> Share {
    shares.get(&node_id(address)).copied().unwrap_or_default()
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.members.leave();
        self.members.cluster.leave();
    }
}

/// A number for what is shared and whether it goes round. It is the same for the same prefixes in any order.
fn digest(options: &ClusterOptions) -> u64 {
    let mut prefixes: Vec<_> = options.stores.iter().map(url_text).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    // All transit buffers of a ring have the same size.
    let circulates = if options.circulates { options.ring.transit_bytes_max.max(1) } else { 0 };
    XxHash64::oneshot(circulates, prefixes.join("\n").as_bytes())
}

fn url_text(url: &url::Url) -> &str {
    url.as_str().trim_end_matches('/')
}
