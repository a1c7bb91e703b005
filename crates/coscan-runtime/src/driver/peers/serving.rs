//! Requests of other servers: their pages come into the pool as if a query here needed them, or bypass it.

use std::collections::BTreeSet;
use std::sync::Arc;

use coscan_core::{
    ChunkIndex, Order, PageId, PageIndex, RemoteQuery, ScanId, ScanSpec, Time, WorkerIndex,
};
use coscan_ring::{FileId, Served};

use super::{ServedFile, ServingScan};
use crate::driver::effects::DecidedBypass;
use crate::driver::message::PageRead;
use crate::driver::state::State;
use crate::scans::parts::ScanParts;

/// The worker of a scan that reads for another server.
const WORKER: WorkerIndex = WorkerIndex(0);

impl State {
    pub(super) fn serve(
        &mut self,
        served: Served,
        file: FileId,
        pages: &[PageIndex],
        query: RemoteQuery,
        now: Time,
    ) {
        let found = self.scan_for(file, pages);
        let Some(peers) = &mut self.peers else { return };
        // Requests of this server itself are for fragments that go round.
        peers.report.requests_served += u64::from(served.node != peers.node.id());
        let Some((spec, parts)) = found else {
            peers.node.failed(served); // They are of several chunks, or the file is not open.
            return;
        };
        let Ok(scan) = self.core.start_remote_scan(now, spec, query) else {
            peers.node.no_space(served); // The pool is smaller than the chunk.
            return;
        };
        peers.serving.insert(scan, ServingScan { served, parts });
        peers.scans.insert(served, scan);
        let asked = self.core.request_chunk(now, scan, WORKER);
        asked.unwrap_or_else(|error| unreachable!("the scan has just started: {error}"));
    }

    /// The scan that brings pages into the pool: of one chunk of the file as a table.
    fn scan_for(&self, file: FileId, pages: &[PageIndex]) -> Option<(ScanSpec, Arc<ScanParts>)> {
        let shared = self.peers.as_ref()?.files.get(file)?;
        let ServedFile { table, ref parts } = *shared.served.as_ref()?;
        let ids: Vec<_> = pages.iter().map(|&page| shared.page_id(page)).collect();
        let state = self.core.state();
        let slices =
            |&page: &PageId| state.slices_of(page).iter().filter(move |slice| slice.table == table);
        let holds_all = |chunk| ids.iter().all(|id| slices(id).any(|slice| slice.chunk == chunk));
        let chunk =
            slices(ids.first()?).map(|slice| slice.chunk).find(|&chunk| holds_all(chunk))?;
        let groups = ids.iter().flat_map(|id| slices(id).map(|slice| slice.group));
        let groups: BTreeSet<_> = groups.collect();
        let spec = ScanSpec {
            table,
            groups: groups.into_iter().collect(),
            chunks: vec![chunk..ChunkIndex(chunk.0 + 1)],
            order: Order::Any,
            workers: 1,
            weight: 1,
            pages: Some(ids),
            computation: None,
        };
        Some((spec, Arc::clone(parts)))
    }

    /// Notes that the chunk of a request is in the pool. Returns false if the scan reads for no other server.
    pub(in crate::driver) fn is_served(&mut self, scan: ScanId) -> bool {
        let Some(served) = self.served_by(scan) else { return false };
        if let Some(peers) = &mut self.peers {
            peers.node.ready(served);
        }
        true
    }

    /// Notes that there is no space for the chunk of a request.
    pub(in crate::driver) fn served_without_space(&mut self, scan: ScanId, now: Time) {
        let Some(served) = self.served_by(scan) else { return };
        self.end_serving_scan(served, now);
        if let Some(peers) = &mut self.peers {
            peers.node.no_space(served);
        }
    }

    /// Notes that a page of a request could not be read. Returns false if the scan reads for no other server.
    pub(in crate::driver) fn served_has_failed(&mut self, scan: ScanId) -> bool {
        let Some(served) = self.served_by(scan) else { return false };
        if let Some(peers) = &mut self.peers {
            peers.node.failed(served);
        }
        true
    }

    /// Reads pages for another server alone.
    pub(super) fn bypass(&mut self, served: Served, file: FileId, pages: &[PageIndex], now: Time) {
        let Some(peers) = &mut self.peers else { return };
        let Some(opened) = peers.files.get(file).and_then(|file| file.served.as_ref()) else {
            peers.node.failed(served);
            return;
        };
        let parts = Arc::clone(&opened.parts);
        peers.node.reads(now, file, pages);
        let table = &parts.columns_of(0).snapshot.table;
        let pages = pages.iter().map(|&page| (0, table.page_of_file(0, page))).collect();
        self.effects.bypasses.push(DecidedBypass { served, pages, parts });
    }

    /// Handles pages that bypass the pool, each read or not.
    pub(in crate::driver) fn bypassed(&mut self, served: Served, pages: Vec<PageRead>, now: Time) {
        self.count_read(&pages, now);
        for (id, read) in pages {
            let Some(peers) = &mut self.peers else { return };
            let place = peers.files.place_of(id);
            match (place, read) {
                (Some((file, page)), Ok(bytes)) => {
                    peers.bypassing.insert((served, page), bytes);
                    peers.node.bypassed(served, file, page);
                    self.settle_peers(now);
                    if let Some(peers) = &mut self.peers {
                        peers.bypassing.remove(&(served, page)); // If nobody wants it any more.
                    }
                }
                _ => peers.node.failed(served),
            }
        }
    }

    /// Notes that the network has taken pages of a request, or lost them.
    pub(in crate::driver) fn pages_taken(&mut self, served: Served, pages: Vec<PageIndex>) {
        if let Some(peers) = &mut self.peers {
            pages.into_iter().for_each(|page| peers.node.sent(served, page));
        }
    }

    pub(super) fn stop_serving(&mut self, served: Served, now: Time) {
        self.end_serving_scan(served, now);
        self.remove_unused(now);
    }

    fn end_serving_scan(&mut self, served: Served, now: Time) {
        let Some(peers) = &mut self.peers else { return };
        if let Some(scan) = peers.scans.remove(&served) {
            peers.serving.remove(&scan);
            self.core.cancel_scan(now, scan);
        }
    }

    /// Ends the reading of pages that bypass the pool, unless their request still needs them.
    pub(in crate::driver) fn give_up_bypass(
        &mut self,
        served: Served,
        pages: &[PageId],
        now: Time,
    ) -> bool {
        let is_over = self.peers.as_ref().is_none_or(|peers| !peers.node.bypasses(served));
        if is_over {
            self.count_has_read(pages.iter().map(|&page| (page, false)), now);
        }
        is_over
    }
}
