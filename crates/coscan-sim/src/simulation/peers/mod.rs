//! A machine among others that share their reads: the node of the ring between its buffer manager and its store.
//!
//! Requests to others, service for others and advice to others have a file each.

mod announcements;
mod asking;
mod serving;

use std::collections::{BTreeMap, VecDeque};

use coscan_core::{ChunkIndex, GroupIndex, Layout, LoadId, PageIndex, ScanId, Time};
use coscan_ring::{
    Action, Extents, FileId, Message, Node, NodeId, RemoteInterest, RowGroup, Served, StoreId,
};

use super::Simulation;
use crate::table::Table;
use crate::violation::Broken;

/// The way in which machines share the files of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedFiles {
    /// The identity of the first table's file. Those of others follow.
    pub first_identity: u64,
    /// The bytes after which an extent ends.
    pub extent_bytes: u64,
    /// The least chunks of a scan whose needs are announced. Smaller scans are over before it would help.
    pub need_chunks_min: usize,
}

impl Default for SharedFiles {
    fn default() -> Self {
        Self { first_identity: 0, extent_bytes: 8 << 20, need_chunks_min: 8 }
    }
}

/// The other machines, as this one sees them.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) node: Node,
    need_chunks_min: usize,
    /// The scans of this machine's buffer manager that are for others.
    scans: BTreeMap<ScanId, ForPeer>,
    scan_of: BTreeMap<ForPeer, ScanId>,
    /// Loads that bypass the pool.
    bypassing: BTreeMap<LoadId, (Served, FileId)>,
    bypassing_next: u64,
    outbox: VecDeque<(NodeId, Message)>,
    /// Bytes that were requested from the store.
    store_bytes: u64,
    /// The time when each page was requested from the store.
    page_reads: Vec<(FileId, PageIndex, Time)>,
    /// Loads of which some pages came from the store and some from other machines.
    mixed_loads: u64,
}

/// The purpose of a scan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ForPeer {
    Request(Served),
    Interest(RemoteInterest),
}

impl Peers {
    /// Creates the peers. Tables are the same files on all machines; a chunk is a row group.
    pub(super) fn new(mut node: Node, tables: &[Table], files: SharedFiles) -> Self {
        for (table, identity) in tables.iter().zip(files.first_identity..) {
            let layout = &table.layout;
            let row_groups: Vec<_> =
                layout.chunks().map(|chunk| row_group(layout, chunk)).collect();
            let pages = (0..layout.page_count() as u32).map(PageIndex);
            let pages = pages.map(|page| {
                let first = layout.chunks_of(page).first();
                let row = first.map_or(0, |&chunk| layout.rows(chunk).start);
                (row, layout.bytes_of(page))
            });
            let extents = Extents::cut_at(&row_groups, files.extent_bytes);
            node.add_file(identity, StoreId(0), extents, pages);
        }
        Self {
            node,
            need_chunks_min: files.need_chunks_min,
            scans: BTreeMap::new(),
            scan_of: BTreeMap::new(),
            bypassing: BTreeMap::new(),
            bypassing_next: asking::BYPASSING,
            outbox: VecDeque::new(),
            store_bytes: 0,
            page_reads: Vec::new(),
            mixed_loads: 0,
        }
    }

    fn add_scan(&mut self, scan: ScanId, what: ForPeer) {
        self.scans.insert(scan, what);
        self.scan_of.insert(what, scan);
    }

    fn remove_scan(&mut self, what: ForPeer) -> Option<ScanId> {
        let scan = self.scan_of.remove(&what)?;
        self.scans.remove(&scan);
        Some(scan)
    }
}

fn row_group(layout: &Layout, chunk: ChunkIndex) -> RowGroup {
    let rows = layout.rows(chunk);
    let groups = (0..layout.group_count() as u32).map(GroupIndex);
    let pages = groups.flat_map(|group| layout.slice(chunk, group));
    // A page of two chunks begins in the first.
    let pages = pages.filter(|&&page| layout.chunks_of(page).first() == Some(&chunk));
    let bytes = pages.map(|&page| layout.bytes_of(page)).sum();
    RowGroup { rows: rows.end - rows.start, bytes }
}

impl Simulation<'_> {
    /// Handles a message from another machine.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        from: NodeId,
        message: Message,
    ) -> Result<(), Broken> {
        self.now = now;
        self.peers_mut().node.handle(now, from, message);
        self.settle()
    }

    /// Notes that the network has taken a page from this machine.
    pub(crate) fn taken(
        &mut self,
        now: Time,
        served: Served,
        page: PageIndex,
    ) -> Result<(), Broken> {
        self.now = now;
        self.peers_mut().node.sent(served, page);
        self.settle()
    }

    /// Sets the other machines that are alive.
    pub(crate) fn set_members(&mut self, now: Time, members: &[NodeId]) -> Result<(), Broken> {
        self.now = now;
        self.peers_mut().node.set_members(now, members.iter().copied());
        self.settle()?;
        self.say_needs_again(); // Extents have other owners, who know of no scan.
        self.settle()
    }

    fn say_needs_again(&mut self) {
        for scan in self.scans.keys().copied().collect::<Vec<_>>() {
            self.announce_end(scan);
            self.announce(scan);
        }
    }

    /// Notes that the connection of another machine to this one has ended.
    pub(crate) fn disconnected(&mut self, now: Time, node: NodeId) -> Result<(), Broken> {
        self.now = now;
        self.peers_mut().node.reconnected(node);
        self.settle()
    }

    /// The next message to another machine.
    pub(crate) fn poll_message(&mut self) -> Option<(NodeId, Message)> {
        self.peers_mut().outbox.pop_front()
    }

    /// Bytes that were requested from the store.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.peers.as_ref().map_or(0, |peers| peers.store_bytes)
    }

    /// The time when each page was requested from the store.
    pub(crate) fn page_reads(&self) -> &[(FileId, PageIndex, Time)] {
        self.peers.as_ref().map_or(&[], |peers| &peers.page_reads)
    }

    /// Loads of which some pages came from the store and some from other machines.
    pub(crate) fn mixed_loads(&self) -> u64 {
        self.peers.as_ref().map_or(0, |peers| peers.mixed_loads)
    }

    /// Bytes that are held for other machines outside of the pool.
    pub(crate) fn transit_bytes(&self) -> u64 {
        self.peers.as_ref().map_or(0, |peers| peers.node.transit_bytes())
    }

    /// The work for other machines, alive or not, that has not ended.
    pub(crate) fn left_for_peers(&self) -> Option<String> {
        let peers = self.peers.as_ref()?;
        let (scans, bytes) = (peers.scans.len(), peers.node.transit_bytes());
        let left = scans + peers.bypassing.len() > 0 || bytes > 0;
        left.then(|| format!("{:?} and {bytes} bytes outside of the pool", peers.scans.values()))
    }

    /// Requests to the store.
    pub(crate) fn store_requests(&self) -> u64 {
        self.disk.requests
    }

    fn node(&self) -> &Node {
        &self.peers.as_ref().expect("a machine of a cluster").node
    }

    fn peers_mut(&mut self) -> &mut Peers {
        self.peers.as_mut().expect("a machine of a cluster")
    }

    /// Carries out the actions of the node of the ring. Returns true if there were any.
    pub(super) fn settle_peers(&mut self) -> Result<bool, Broken> {
        let mut was_any = false;
        while let Some(action) = self.peers.as_mut().and_then(|peers| peers.node.poll_action()) {
            was_any = true;
            self.carry_out_for_peers(action)?;
        }
        Ok(was_any)
    }

    fn carry_out_for_peers(&mut self, action: Action) -> Result<(), Broken> {
        match action {
            Action::Send { to, message } => self.peers_mut().outbox.push_back((to, message)),
            Action::Read(load) | Action::ReadInstead(load) => self.read(&load),
            Action::Arrived { load, page, .. } => self.arrive(load, page)?,
            Action::Serve { served, file, pages, query } => {
                self.start_serving(served, file, &pages, query)?;
            }
            Action::Bypass { served, file, pages } => self.bypass(served, file, pages),
            Action::StopServing { served } => self.stop_serving(served),
            Action::Want { interest, file, columns, rows } => {
                self.want(interest, file, columns, &rows)?;
            }
            Action::Unwant { interest, file, rows } => self.unwant(interest, file, rows),
            Action::Forget { interest } => self.end_scan_for(ForPeer::Interest(interest)),
            Action::SetSource { file, pages, source } => self.set_source(file, pages, source),
            Action::Choose { .. } => self.say_needs_again(),
            Action::Renew => {
                self.peers_mut().node.renew(u32::MAX);
            }
        }
        Ok(())
    }

    /// Ends the scan of the buffer manager that has this purpose.
    fn end_scan_for(&mut self, what: ForPeer) {
        if let Some(scan) = self.peers_mut().remove_scan(what) {
            self.manager.cancel_scan(self.now, scan);
            self.ledger.scan_ended(scan);
        }
    }
}
