//! Other servers, beside core: which of them reads a page, the requests to them, and the requests from them.
//!
//! The [`Node`] decides whom to ask and what to answer. Here its actions are carried out on core (`acting`), and core's
//! decisions are passed to it. `files` has the names of shared files, `asking` the loads of this server, `serving`
//! those for others, `announcements` the needs of scans, here and there, `circulating` pages that go round a ring, `opening`
//! files that others ask for, `receiving` the messages of others, `commands` the commands of the program, `reports` what
//! observers see.

mod acting;
mod announcements;
mod asking;
mod circulating;
mod commands;
mod files;
mod opening;
mod receiving;
mod reports;
mod serving;
#[cfg(all(test, not(feature = "shuttle")))]
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
    /// The parts of a scan of all its columns.
    pub(crate) parts: Arc<ScanParts>,
}

/// The state of other servers, and of the work for them.
#[derive(Debug)]
pub(super) struct Peers {
    node: Node,
    pub(super) files: SharedFiles,
    /// The scans of core that read for others, and their purposes.
    serving: BTreeMap<ScanId, ServingScan>,
    scans: BTreeMap<Served, ScanId>,
    /// The needs of scans of others for each file: interests of core.
    interests: BTreeMap<(RemoteInterest, FileId), ScanId>,
    /// The interests by scan of core.
    interested: BTreeMap<ScanId, RemoteInterest>,
    /// Scans whose needs owners are to be told again. While there are any, there is one walk for them.
    unannounced: BTreeSet<ScanId>,
    /// Pages that were read for others alone, until they are sent.
    bypassing: BTreeMap<(Served, PageIndex), Bytes>,
    /// Pages of the message that is being applied.
    arriving: BTreeMap<PageIndex, Bytes>,
    opening: Opening,
    /// The fragments that go round, if pages circulate.
    circulating: Option<Circulating>,
    network: Arc<dyn Network>,
    opener: Weak<dyn FileOpener>,
    /// The receiver of reports on what the network has taken.
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

    /// The time at which it is to be passed the time.
    pub(super) fn timeout(&self) -> Option<Time> {
        let of_ring = self.circulating.as_ref().and_then(Circulating::timeout);
        self.node.poll_timeout().into_iter().chain(of_ring).min()
    }
}
