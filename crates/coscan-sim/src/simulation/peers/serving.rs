//! Requests of other machines.

use std::collections::BTreeSet;

use coscan_core::{
    ChunkIndex, LoadId, Order, PageId, PageIndex, RemoteQuery, Scan, ScanId, ScanSpec, TableId,
    WorkerIndex,
};
use coscan_ring::{FileId, Load, Served};

use super::ForPeer;
use super::asking::BYPASSING;
use crate::simulation::Simulation;
use crate::violation::Broken;

/// The worker of a scan that reads for another machine.
const WORKER: WorkerIndex = WorkerIndex(0);

impl Simulation<'_> {
    /// The request that a scan reads for.
    pub(in crate::simulation) fn served_by(&self, scan: ScanId) -> Option<Served> {
        match self.peers.as_ref()?.scans.get(&scan) {
            Some(&ForPeer::Request(served)) => Some(served),
            _ => None,
        }
    }

    pub(super) fn start_serving(
        &mut self,
        served: Served,
        file: FileId,
        pages: &[PageIndex],
        query: RemoteQuery,
    ) -> Result<(), Broken> {
        let layout = &self.workload.tables[file.0 as usize].layout;
        let of_all =
            |chunk: &ChunkIndex| pages.iter().all(|&page| layout.chunks_of(page).contains(chunk));
        let chunk = layout.chunks_of(pages[0]).iter().copied().find(of_all);
        let chunk = chunk.expect("a load reads pages of one chunk");
        let groups: BTreeSet<_> = pages.iter().map(|&page| layout.group_of(page)).collect();
        let ids: Vec<PageId> =
            pages.iter().map(|&page| self.numbers.id(file.0 as usize, page)).collect();
        let spec = ScanSpec {
            table: TableId(file.0),
            groups: groups.into_iter().collect(),
            chunks: vec![chunk..ChunkIndex(chunk.0 + 1)],
            order: Order::Any,
            workers: 1,
            weight: 1,
            pages: Some(ids),
            computation: None,
        };
        let Ok(scan) = self.manager.start_remote_scan(self.now, &spec, query) else {
            self.peers_mut().node.no_space(served); // Its pool is smaller than the chunk.
            return Ok(());
        };
        let is_sparse = self.manager.state().scan(scan).is_some_and(Scan::is_sparse);
        self.ledger.scan_started(scan, &spec, is_sparse)?;
        self.peers_mut().add_scan(scan, ForPeer::Request(served));
        self.manager.request_chunk(self.now, scan, WORKER).expect("it has just started");
        self.ledger.asks(self.now, scan, WORKER);
        Ok(())
    }

    /// Notes that the chunk of a request is in the pool.
    pub(in crate::simulation) fn served_ready(&mut self, served: Served) {
        self.peers_mut().node.ready(served);
    }

    /// Notes that there is no space for the chunk of a request.
    pub(in crate::simulation) fn served_without_space(&mut self, served: Served) {
        self.end_scan_for(ForPeer::Request(served));
        self.peers_mut().node.no_space(served);
    }

    /// Notes that a page of a request could not be read.
    pub(in crate::simulation) fn served_failed(&mut self, served: Served) {
        self.peers_mut().node.failed(served);
    }

    pub(super) fn bypass(&mut self, served: Served, file: FileId, pages: Vec<PageIndex>) {
        let peers = self.peers_mut();
        let load = LoadId(peers.bypassing_next);
        peers.bypassing_next += 1;
        peers.bypassing.insert(load, (served, file));
        self.read(&Load { load, file, pages, urgent: true, query: RemoteQuery::default() });
    }

    /// Handles a page that has arrived for a load that bypasses the pool. Returns false if the load does not.
    pub(in crate::simulation) fn has_bypassed(&mut self, load: LoadId, page: PageIndex) -> bool {
        let Some(peers) = &mut self.peers else { return false };
        if load.0 < BYPASSING {
            return false;
        }
        if let Some(&(served, file)) = peers.bypassing.get(&load) {
            peers.node.bypassed(served, file, page);
        }
        true
    }

    pub(super) fn stop_serving(&mut self, served: Served) {
        self.end_scan_for(ForPeer::Request(served));
        self.peers_mut().bypassing.retain(|_, (bypassing, _)| *bypassing != served);
    }
}
