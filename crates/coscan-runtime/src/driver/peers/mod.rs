//! Other servers, beside core: which of them reads a page, what they are asked for, what they ask for.
//!
//! The [`Node`] decides whom to ask and what to answer. Here its actions are carried out on core (`acting`), and what core
//! decides is told to it. `files` has the names of what is shared, `asking` the loads of this server, `serving` those for others,
//! `advising` what scans will need, here and there, `circulating` pages that go round a ring, `opening` files that others ask for, `receiving` what comes from others, `commands` what
//! the program may do, `survey` what those see who watch.

mod acting;
mod advising;
mod asking;
mod circulating;
mod commands;
mod files;
mod opening;
mod receiving;
mod serving;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use coscan_core::{PageIndex, ScanId, TableId, Time};
use coscan_ring::{FileId, Node, NodeId, RemoteInterest, Served};

use crate::peers::{ClusterOptions, ClusterReport, FileOpener, Network, SentPages};
use crate::scans::parts::ScanParts;
use circulating::Circulating;
use files::{NewSharedFile, SharedFiles};
use opening::Opening;

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
    opening: Opening,
    /// If pages go round.
    circulating: Option<Circulating>,
    network: Arc<dyn Network>,
    opener: Weak<dyn FileOpener>,
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
    fn new(
        (id, incarnation): (NodeId, u64),
        options: &ClusterOptions,
        network: Arc<dyn Network>,
        opener: Weak<dyn FileOpener>,
        sent_pages: Weak<dyn SentPages>,
    ) -> Self {
        Self {
            node: Node::new(id, incarnation, options.node_config()),
            files: SharedFiles::default(),
            serving: BTreeMap::new(),
            scans: BTreeMap::new(),
            interests: BTreeMap::new(),
            interested: BTreeMap::new(),
            unannounced: BTreeSet::new(),
            bypassing: BTreeMap::new(),
            arriving: BTreeMap::new(),
            opening: Opening::default(),
            circulating: Circulating::new(id, incarnation, options),
            network,
            opener,
            sent_pages,
            report: ClusterReport::default(),
        }
    }

    /// When it is to be told the time.
    pub(super) fn timeout(&self) -> Option<Time> {
        let of_ring = self.circulating.as_ref().and_then(Circulating::timeout);
        self.node.poll_timeout().into_iter().chain(of_ring).min()
    }
}
