//! Other servers, beside core: which of them reads a page, what they are asked for, what they ask for.
//!
//! The [`Node`] decides whom to ask and what to answer. Here its actions are carried out on core, and what core decides is
//! told to it. `files` has the names of what is shared, `asking` the loads of this server, `serving` those for others,
//! `advising` what scans will need, here and there, `receiving` what comes from others, `commands` what the program may do.

mod advising;
mod asking;
mod commands;
mod files;
mod receiving;
mod serving;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use coscan_core::{PageIndex, ScanId, TableId, Time};
use coscan_ring::{Action, FileId, Message, Node, NodeId, RemoteInterest, Served};

use super::state::State;
use crate::peers::{ClusterReport, FileName, Network, Outgoing, PeerMessage, SentPages, Taken};
use crate::scans::parts::ScanParts;
use files::{NewSharedFile, SharedFiles};

/// A file as it is served: a table of its own.
#[derive(Clone, Debug)]
pub(crate) struct ServedFile {
    pub(crate) table: TableId,
    /// All its columns.
    pub(crate) parts: Arc<ScanParts>,
}

/// What is known of other servers, and done for them.
#[derive(Debug)]
pub(super) struct Peers {
    node: Node,
    pub(super) files: SharedFiles,
    /// The scans of core that read for others, and what they are for.
    serving: BTreeMap<ScanId, ServingScan>,
    scans: BTreeMap<Served, ScanId>,
    /// What scans of others want of each file: interests of core.
    interests: BTreeMap<(RemoteInterest, FileId), ScanId>,
    /// The same, by scan of core.
    interested: BTreeMap<ScanId, RemoteInterest>,
    /// Scans whose needs owners are to be told again: while there are any, there is one walk for them.
    unannounced: BTreeSet<ScanId>,
    /// Pages that were read for others alone, until they are sent.
    bypassing: BTreeMap<(Served, PageIndex), Bytes>,
    /// Pages of the message that is being applied.
    arriving: BTreeMap<PageIndex, Bytes>,
    /// What others have said about files that are being opened for them.
    opening: BTreeMap<FileName, Vec<(NodeId, PeerMessage)>>,
    network: Arc<dyn Network>,
    /// Is told what the network has taken.
    sent_pages: Weak<dyn SentPages>,
    report: ClusterReport,
}

/// A scan of core that reads for another server.
#[derive(Debug)]
struct ServingScan {
    served: Served,
    parts: Arc<ScanParts>,
}

impl Peers {
    fn new(node: Node, network: Arc<dyn Network>, sent_pages: Weak<dyn SentPages>) -> Self {
        Self {
            node,
            files: SharedFiles::default(),
            serving: BTreeMap::new(),
            scans: BTreeMap::new(),
            interests: BTreeMap::new(),
            interested: BTreeMap::new(),
            unannounced: BTreeSet::new(),
            bypassing: BTreeMap::new(),
            arriving: BTreeMap::new(),
            opening: BTreeMap::new(),
            network,
            sent_pages,
            report: ClusterReport::default(),
        }
    }

    /// When it is to be told the time.
    pub(super) fn timeout(&self) -> Option<Time> {
        self.node.poll_timeout()
    }
}

impl State {
    /// Carries out what the node wants; false if there was nothing.
    pub(super) fn settle_peers(&mut self, now: Time) -> bool {
        let mut was_any = false;
        while let Some(action) = self.peers.as_mut().and_then(|peers| peers.node.poll_action()) {
            was_any = true;
            self.act_for_peers(action, now);
        }
        was_any
    }

    /// Tells the node the time, if that is due.
    pub(super) fn time_out_peers(&mut self, now: Time) {
        if let Some(peers) = &mut self.peers
            && peers.timeout().is_some_and(|time| time <= now)
        {
            peers.node.handle_timeout(now);
            self.settle_peers(now); // Before a walk gives up a load that is to be read after all.
        }
    }

    fn act_for_peers(&mut self, action: Action, now: Time) {
        match action {
            Action::Send { to, message } => self.send_to_peer(to, message),
            Action::Read(load) => self.read_itself(&load),
            Action::Arrived { load, file, page } => self.arrived(load, (file, page), now),
            Action::Serve { served, file, pages, query } => {
                self.serve(served, file, &pages, query, now);
            }
            Action::Bypass { served, file, pages } => self.bypass(served, file, &pages),
            Action::StopServing { served } => self.stop_serving(served, now),
            Action::SetSource { file, pages, source } => {
                let shared = self.peers.as_ref().and_then(|peers| peers.files.get(file));
                if let Some(shared) = shared {
                    let pages = shared.page_id(pages.start)..shared.page_id(pages.end);
                    self.core.set_source(now, pages, source);
                }
            }
            Action::Want { interest, file, columns, rows } => {
                self.want(interest, file, &columns, &rows, now);
            }
            Action::Unwant { interest, file, rows } => self.unwant(interest, file, &rows, now),
            Action::Forget { interest } => self.forget_interest(interest, now),
        }
    }

    /// Queues a message, with the bytes of its pages.
    fn send_to_peer(&mut self, to: NodeId, message: Message) {
        let Some(peers) = &mut self.peers else { return };
        let (mut pages, mut taken) = (Vec::new(), None);
        if let Message::Pages { get, file, pages: sent } = &message {
            let served = Served { node: to, get: *get };
            let Some(shared) = peers.files.get(*file) else { return };
            for &page in sent {
                let bypassed = peers.bypassing.remove(&(served, page));
                if let Some(bytes) = &bypassed {
                    peers.report.bytes_bypassed += bytes.len() as u64;
                }
                let cached = || self.frames.get(&shared.page_id(page)).cloned();
                let bytes = bypassed.or_else(cached).expect("what is sent is held until then");
                peers.report.bytes_sent += bytes.len() as u64;
                pages.push(bytes);
            }
            taken = Some(Taken { owner: peers.sent_pages.clone(), served, pages: sent.clone() });
        }
        let file = message.file().and_then(|&file| peers.files.get(file));
        let name = |_| file.map(|file| FileName::clone(&file.name));
        let range = |page: PageIndex| file.map(|file| file.range(page));
        if let Some(message) = message.translate(name, range) {
            self.effects.outgoing.push(Outgoing { to, message, pages, _taken: taken });
            self.effects.network.get_or_insert_with(|| Arc::clone(&peers.network));
        }
    }

    /// What is read for another server, by the scan that does.
    pub(super) fn served_parts(&self, scan: ScanId) -> Option<Arc<ScanParts>> {
        let peers = self.peers.as_ref()?;
        peers.serving.get(&scan).map(|serving| Arc::clone(&serving.parts))
    }

    /// What a load reads for, if that is a request of another server.
    fn served_by(&self, scan: ScanId) -> Option<Served> {
        self.peers.as_ref()?.serving.get(&scan).map(|serving| serving.served)
    }
}
