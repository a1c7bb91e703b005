//! The commands of a program about other servers.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use coscan_core::{PageId, Time};
use coscan_ring::{GetId, NodeId};
use coscan_storage::table::ParquetFile;

use super::circulating::Circulating;
use super::{NewSharedFile, Peers, ServedFile};
use crate::driver::handle::Driver;
use crate::driver::state::State;
use crate::peers::{ClusterOptions, ClusterReport, FileName, FileOpener, Network, PeerMessage};
use crate::tables::registry::FileId;

impl Driver {
    /// Joins other servers. Returns false if it has joined before.
    pub(crate) fn join_cluster(
        self: &Arc<Self>,
        id: NodeId,
        incarnation: u64,
        options: &ClusterOptions,
        network: Arc<dyn Network>,
        opener: Weak<dyn FileOpener>,
    ) -> bool {
        if self.shared_stores.set(options.clone()).is_err() {
            return false;
        }
        let this = Arc::downgrade(self);
        let peers = Box::new(Peers::new((id, incarnation), options, network, opener, this));
        self.call(|state, _| {
            if !state.is_broken() {
                state.peers = Some(peers);
            }
        });
        true
    }

    /// Leaves the other servers: the manager reads everything itself from now on.
    pub(crate) fn leave_cluster(self: &Arc<Self>) {
        self.call(|state, now| state.set_members(&[], now));
        let peers = self.call(|state, now| state.leave_cluster(now));
        drop(peers);
    }

    pub(crate) fn set_members(self: &Arc<Self>, members: Vec<NodeId>) {
        self.call(|state, now| state.set_members(&members, now));
    }

    pub(crate) fn reconnected(self: &Arc<Self>, peer: NodeId) {
        self.call(|state, _| {
            state.forget_peer(peer);
            // The peer may have removed this server meanwhile, and forgotten its needs.
            state.announce_all_again();
        });
    }

    pub(crate) fn disconnected(self: &Arc<Self>, peer: NodeId) {
        self.call(|state, _| state.forget_peer(peer));
    }

    pub(crate) fn receive(self: &Arc<Self>, from: NodeId, message: PeerMessage, pages: Vec<Bytes>) {
        self.call(|state, now| state.receive(from, message, pages, now));
    }

    pub(crate) fn refuse(self: &Arc<Self>, to: NodeId, message: &PeerMessage) {
        self.call(|state, _| state.refuse(to, message));
    }

    pub(crate) fn expects(
        self: &Arc<Self>,
        from: NodeId,
        get: GetId,
        file: &FileName,
        pages: &[Range<u64>],
    ) -> bool {
        self.call(|state, _| state.expects(from, get, file, pages))
    }

    pub(crate) fn opened_for_peers(self: &Arc<Self>, name: &FileName, served: Option<ServedFile>) {
        self.call(|state, now| state.opened_for_peers(name, served, now));
    }

    /// Stops serving files that no other server has asked for since the last call.
    pub(crate) fn forget_idle_files(self: &Arc<Self>) -> Vec<FileName> {
        self.call(|state, _| {
            state.peers.as_mut().map_or_else(Vec::new, |peers| peers.forget_idle())
        })
    }

    pub(crate) fn cluster_report(&self) -> ClusterReport {
        let state = self.lock();
        state.peers.as_ref().map_or_else(ClusterReport::default, |peers| ClusterReport {
            files: peers.files.len(),
            ..peers.report
        })
    }

    /// Shares a file that was registered, if it is in one of the shared stores.
    pub(crate) fn share_file(self: &Arc<Self>, file: &ParquetFile, id: FileId, first_page: PageId) {
        let Some(options) = self.shared_stores.get() else { return };
        let Some(name) = FileName::of(file).filter(|name| options.stores.contain(&name.url()))
        else {
            return;
        };
        let is_known = self
            .call(|state, _| state.peers.as_ref().is_none_or(|peers| peers.files.knows(id, &name)));
        if !is_known {
            let new = NewSharedFile::new(self.memory(), file, name);
            self.call(|state, now| state.share_file(id, first_page, new, now));
        }
    }
}

impl Peers {
    fn forget_idle(&mut self) -> Vec<FileName> {
        self.circulating.iter_mut().for_each(Circulating::forget_idle);
        let mut idle = Vec::new();
        let wanted: BTreeSet<_> = self.interests.keys().map(|(_, file)| *file).collect();
        let is_serving = !self.scans.is_empty();
        for (id, file) in self.files.all_mut() {
            let was_asked_for = std::mem::take(&mut file.is_asked_for);
            let is_in_use = was_asked_for || is_serving || wanted.contains(&id);
            if file.served.is_some() && !is_in_use {
                file.served = None;
                idle.push(FileName::clone(&file.name));
            }
        }
        idle
    }
}

impl State {
    /// Forgets what another server has announced, needed and asked for.
    fn forget_peer(&mut self, peer: NodeId) {
        if let Some(peers) = &mut self.peers {
            peers.node.reconnected(peer);
            peers.opening.forget(|from, _| from == peer);
        }
    }

    fn set_members(&mut self, members: &[NodeId], now: Time) {
        if let Some(peers) = &mut self.peers {
            peers.node.set_members(now, members.iter().copied());
            let own = peers.node.id();
            peers.opening.forget(|from, _| from != own && !members.contains(&from));
        }
        self.set_circulating_members(members, now);
        self.announce_all_again();
    }

    fn share_file(&mut self, file: FileId, first_page: PageId, new: NewSharedFile, now: Time) {
        let Some(peers) = &mut self.peers else { return };
        if peers.files.knows(file, new.name()) || !self.registry.knows(file) {
            return;
        }
        let (extents, store) = (new.extents.clone(), peers.files.store_of(new.name()));
        let pages = new.pages.iter().copied();
        let id = peers.node.add_file(new.name().identity(), store, extents, pages);
        peers.files.insert(id, file, first_page, new);
        self.settle_peers(now);
    }

    /// Stops sharing a file that is no longer registered.
    pub(in crate::driver) fn unshare_file(&mut self, file: FileId, now: Time) {
        let shared = self.peers.as_ref().and_then(|peers| peers.files.by_registration(file));
        if let Some(id) = shared {
            self.await_no_more(id, now);
            if let Some(peers) = &mut self.peers {
                peers.node.remove_file(now, id);
            }
            self.settle_peers(now);
            if let Some(peers) = &mut self.peers {
                peers.files.remove(id);
            }
        }
    }

    /// Ends all work for others. What they were asked for is read from the store.
    fn leave_cluster(&mut self, now: Time) -> Option<Box<Peers>> {
        let peers = self.peers.as_ref()?;
        let interests: BTreeSet<_> =
            peers.interests.keys().map(|(interest, _)| *interest).collect();
        let files: Vec<_> = peers.files.registered().collect();
        interests.into_iter().for_each(|interest| self.forget_interest(interest, now));
        files.into_iter().for_each(|file| self.unshare_file(file, now));
        self.peers.take()
    }
}
