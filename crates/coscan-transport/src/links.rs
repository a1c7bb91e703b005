//! The connections that this server has made, by server.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use coscan_runtime::ring::NodeId;
use coscan_runtime::{CirculatingMessage, Network, Outgoing, OutgoingFragment};

use crate::link::{FragmentQueue, Link, LinkStatus, Queue, Queued};
use crate::node_id::node_id;

/// The connections that this server has made or tries to make.
#[derive(Debug, Default)]
pub(crate) struct Links {
    by_node: RwLock<BTreeMap<NodeId, Link>>,
}

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct LinkState {
    pub(crate) address: String,
    pub(crate) status: LinkStatus,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

impl Network for Links {
    fn send(&self, message: Outgoing) {
        if let Some(link) = self.read().get(&message.to) {
            link.send(Queued::Message(Box::new(message)));
        }
    }

    fn send_circulating(&self, to: NodeId, message: CirculatingMessage) {
        if let Some(link) = self.read().get(&to) {
            link.send(Queued::Circulating(message));
        }
    }

    /// Queues a fragment. Without a link the server is gone, and the ring changes.
    fn send_fragment(&self, fragment: OutgoingFragment) {
        if let Some(link) = self.read().get(&fragment.to) {
            link.send_fragment(fragment);
        }
    }
}

impl Links {
    /// The queues of a server to send from now on; `None` if they were asked for before.
    pub(crate) fn open(&self, address: &str) -> Option<(Queue, FragmentQueue)> {
        let node = node_id(address);
        if self.read().contains_key(&node) {
            return None;
        }
        match self.write().entry(node) {
            Entry::Vacant(vacant) => {
                let (link, queue, fragments) = Link::new(address.to_owned());
                vacant.insert(link);
                Some((queue, fragments))
            }
            Entry::Occupied(_) => None,
        }
    }

    /// Stops sending to a server.
    pub(crate) fn close(&self, address: &str) {
        let closed = self.write().remove(&node_id(address));
        drop(closed);
    }

    pub(crate) fn send_membership(&self, address: &str, message: Vec<u8>) {
        if let Some(link) = self.read().get(&node_id(address)) {
            link.send(Queued::Membership(message));
        }
    }

    pub(crate) fn status(&self, node: NodeId) -> LinkStatus {
        self.read().get(&node).map_or(LinkStatus::Down, Link::status)
    }

    /// Counts pages of this many bytes that have come from a server.
    pub(crate) fn count_received(&self, node: NodeId, bytes: u64) {
        if let Some(link) = self.read().get(&node) {
            link.traffic().count_received(bytes);
        }
    }

    pub(crate) fn states(&self) -> Vec<LinkState> {
        let state = |link: &Link| LinkState {
            address: link.address.clone(),
            status: link.status(),
            bytes_sent: link.traffic().sent(),
            bytes_received: link.traffic().received(),
        };
        self.read().values().map(state).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<NodeId, Link>> {
        self.by_node.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<NodeId, Link>> {
        self.by_node.write().unwrap_or_else(PoisonError::into_inner)
    }
}
