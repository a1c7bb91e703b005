//! Loads of this machine: from its store, or from other machines.

use std::ops::Range;

use coscan_core::{
    ChunkIndex, LoadId, PageId, PageIndex, RemoteQuery, ScanId, Source, TableId, Time,
};
use coscan_ring::{FileId, Load};

use super::ForPeer;
use crate::simulation::Simulation;
use crate::simulation::loads::LoadRun;

/// The first number of loads that bypass the pool.
pub(super) const BYPASSING: u64 = 1 << 63;

impl Simulation<'_> {
    pub(super) fn set_source(&mut self, file: FileId, pages: Range<PageIndex>, source: Source) {
        for page in (pages.start.0..pages.end.0).map(PageIndex) {
            let PageId(id) = self.numbers.id(file.0 as usize, page);
            self.ledger.set_elsewhere(PageId(id), source != Source::Device);
            self.manager.set_source(self.now, PageId(id)..PageId(id + 1), source);
        }
    }

    /// Gets the pages of a load from where they are.
    pub(in crate::simulation) fn read_or_ask(
        &mut self,
        (load, scan): (LoadId, ScanId),
        urgent: bool,
        (table, chunk): (TableId, ChunkIndex),
        pages: &[PageIndex],
    ) {
        let Some(peers) = &self.peers else {
            self.disk.submit(self.now, load, urgent, table, pages);
            return;
        };
        let is_served = matches!(peers.scans.get(&scan), Some(ForPeer::Request(_)));
        let file = FileId(table.0);
        self.tell_interested(file, pages);
        let query = self.remote_query(scan);
        let load = Load { load, file, pages: pages.to_vec(), urgent, query };
        let is_elsewhere = |&page: &PageIndex| self.node().reads_elsewhere(file, page);
        let elsewhere = pages.iter().filter(|page| is_elsewhere(page)).count();
        if is_served {
            self.read(&load); // Whoever owns it: requests are never passed on.
            return;
        }
        let is_mixed = 0 < elsewhere && elsewhere < pages.len();
        self.peers_mut().mixed_loads += u64::from(is_mixed);
        let rows = self.workload.tables[table.0 as usize].layout.rows(chunk);
        let now = self.now;
        let node = &mut self.peers_mut().node;
        // The machine that is asked need not keep the pages for the scan after that.
        node.remove_need(u64::from(scan.0), file, &[rows]);
        node.load(now, &load);
    }

    /// The query of a scan as another machine is to rank it, without the chunk that is asked for.
    fn remote_query(&self, scan: ScanId) -> RemoteQuery {
        let Some(scan) = self.manager.state().scan(scan) else { return RemoteQuery::default() };
        let since = |since: Time| self.now.since(since);
        let chunks = scan.chunks_in_all();
        RemoteQuery {
            waited_ns: scan.starving_since().map_or(0, since),
            chunks_left: scan.needed().len().saturating_sub(1) as u64,
            chunks_in_all: chunks.saturating_sub(1),
            bytes_in_all: scan.size() - scan.size() / chunks.max(1),
        }
    }

    /// Reads pages from the store.
    pub(super) fn read(&mut self, load: &Load) {
        let layout = &self.workload.tables[load.file.0 as usize].layout;
        let bytes: u64 = load.pages.iter().map(|&page| layout.bytes_of(page)).sum();
        let (now, peers) = (self.now, self.peers_mut());
        peers.store_bytes += bytes;
        peers.page_reads.extend(load.pages.iter().map(|&page| (load.file, page, now)));
        peers.node.reads(now, load.file, &load.pages);
        self.disk.submit(self.now, load.load, load.urgent, TableId(load.file.0), &load.pages);
    }

    /// Counts a page that the store has sent.
    pub(in crate::simulation) fn count_read(&mut self, load: LoadId, page: PageIndex) {
        let table = self.loads.get(&load).map(LoadRun::table);
        let Some(peers) = &mut self.peers else { return };
        let bypassing = peers.bypassing.get(&load).map(|&(_, file)| file);
        if let Some(file) = bypassing.or(table.map(|table| FileId(table.0))) {
            peers.node.has_read(self.now, file, page, true);
        }
    }

    /// Announces to the owners what a scan will need.
    pub(in crate::simulation) fn announce(&mut self, scan: ScanId) {
        let Some(peers) = &mut self.peers else { return };
        let Some(started) = self.manager.state().scan(scan) else { return };
        if started.needed().len() < peers.need_chunks_min {
            return;
        }
        let table = started.table();
        let layout = &self.workload.tables[table.0 as usize].layout;
        let columns: Vec<_> = started.groups().iter().map(|group| group.0).collect();
        let rows: Vec<_> = started.needed().iter().map(|chunk| layout.rows(chunk)).collect();
        peers.node.need(u64::from(scan.0), FileId(table.0), &columns, &rows);
    }

    /// Announces that a scan of this machine does not need some chunks any more.
    pub(in crate::simulation) fn announce_unneeded(&mut self, scan: ScanId, chunks: &[ChunkIndex]) {
        let Some(peers) = &mut self.peers else { return };
        let Some(running) = self.manager.state().scan(scan) else { return };
        let layout = &self.workload.tables[running.table().0 as usize].layout;
        let rows: Vec<_> = chunks.iter().map(|&chunk| layout.rows(chunk)).collect();
        peers.node.remove_need(u64::from(scan.0), FileId(running.table().0), &rows);
    }

    pub(in crate::simulation) fn announce_end(&mut self, scan: ScanId) {
        if let Some(peers) = &mut self.peers {
            peers.node.end_need(u64::from(scan.0));
        }
    }

    /// Announces that a load is cancelled.
    pub(in crate::simulation) fn announce_cancelled(&mut self, load: LoadId) {
        if let Some(peers) = &mut self.peers {
            peers.node.cancel_load(self.now, load);
        }
    }
}
