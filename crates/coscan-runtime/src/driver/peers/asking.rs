//! Loads of this server: from its stores, or from other servers.

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, LoadId, PageId, PageIndex, RemoteQuery, ScanId, Time};
use coscan_ring::{FileId, Load};

use super::circulating::Circulating;
use crate::driver::state::State;

impl State {
    /// Asks others for the pages that they read. Returns the pages that are not shared.
    pub(in crate::driver) fn ask_peers(
        &mut self,
        (load, scan): (LoadId, ScanId),
        chunk: ChunkIndex,
        pages: &[PageId],
        now: Time,
    ) -> Vec<PageId> {
        if self.peers.is_none() {
            return pages.to_vec();
        }
        self.tell_interested(pages, now);
        if self.served_by(scan).is_some() {
            return pages.to_vec(); // Whoever is asked reads: requests are never passed on.
        }
        // The server that is asked need not keep the pages for the scan after that.
        self.announce_unneeded(scan, [chunk]);
        let query = self.remote_query(scan, now);
        let Some(peers) = &mut self.peers else { return pages.to_vec() };
        let (mut shared, mut own) = (BTreeMap::<FileId, Vec<PageIndex>>::new(), Vec::new());
        for &page in pages {
            match peers.files.place_of(page) {
                Some((file, index)) => shared.entry(file).or_default().push(index),
                None => own.push(page),
            }
        }
        for (file, pages) in shared {
            let pages = self.await_fragments(load, file, pages, now);
            let Some(peers) = self.peers.as_mut().filter(|_| !pages.is_empty()) else { continue };
            peers.node.load(now, &Load { load, file, pages, urgent: false, query });
        }
        own
    }

    /// The query of a scan as another server is to rank it, without the chunk that is asked for.
    fn remote_query(&self, scan: ScanId, now: Time) -> RemoteQuery {
        let Some(scan) = self.core.state().scan(scan) else { return RemoteQuery::default() };
        let chunks = scan.chunks_in_all();
        RemoteQuery {
            waited_ns: scan.starving_since().map_or(0, |since| now.since(since)),
            chunks_left: scan.needed().len().saturating_sub(1) as u64,
            chunks_in_all: chunks.saturating_sub(1),
            bytes_in_all: scan.size() - scan.size() / chunks.max(1),
        }
    }

    /// Reads pages of a load from the store.
    pub(super) fn read_itself(&mut self, load: &Load, now: Time) {
        let Some(shared) = self.peers.as_ref().and_then(|peers| peers.files.get(load.file)) else {
            return;
        };
        let pages: Vec<_> = load.pages.iter().map(|&page| shared.page_id(page)).collect();
        self.read(load.load, &pages, now);
    }

    /// Reads pages of a load from the store that another server does not send.
    pub(super) fn read_instead(&mut self, load: &Load, now: Time) {
        if let Some(peers) = &mut self.peers
            && let Some(shared) = peers.files.get(load.file)
        {
            let bytes = load.pages.iter().map(|&page| shared.range(page));
            peers.report.bytes_read_instead +=
                bytes.map(|range| range.end - range.start).sum::<u64>();
        }
        self.read_itself(load, now);
    }

    /// Counts pages that are being read from the store, for any server.
    pub(in crate::driver) fn count_reading(&mut self, pages: &[PageId], now: Time) {
        let Some(peers) = &mut self.peers else { return };
        for (file, page) in pages.iter().filter_map(|&page| peers.files.place_of(page)) {
            peers.node.reads(now, file, &[page]);
        }
    }

    /// Counts pages that have been read from the store, or will not be.
    pub(in crate::driver) fn count_has_read(
        &mut self,
        pages: impl IntoIterator<Item = (PageId, bool)>,
        now: Time,
    ) {
        let Some(peers) = &mut self.peers else { return };
        for (page, has_come) in pages {
            if let Some((file, page)) = peers.files.place_of(page) {
                peers.node.has_read(now, file, page, has_come);
            }
        }
    }

    /// Handles a page of a load that has come from another server.
    pub(super) fn arrived(&mut self, load: LoadId, (file, page): (FileId, PageIndex), now: Time) {
        let Some(peers) = &mut self.peers else { return };
        let arrived = peers.arriving.remove(&page).zip(peers.files.get(file));
        let (bytes, shared) = arrived.expect("pages arrive with their bytes");
        peers.report.bytes_received += bytes.len() as u64;
        peers.report.bytes_taken += bytes.len() as u64;
        let id = shared.page_id(page);
        if let Some(in_flight) = self.loads.get(&load) {
            in_flight.counters.count_from_peer(&bytes);
        }
        self.pages_came(load, vec![(id, Ok(bytes))], now);
    }

    /// Withdraws requests to others for pages that no scan needs, after scans have ended.
    pub(in crate::driver) fn ask_for_unneeded_no_more(&mut self, now: Time) {
        self.settle_peers(now); // What is decided is carried out: a load that is cancelled loses it.
        let Some(peers) = &mut self.peers else { return };
        let mut missing: BTreeMap<LoadId, Vec<PageId>> = BTreeMap::new();
        for (load, page) in peers.circulating.iter().flat_map(Circulating::awaited) {
            missing.entry(load).or_default().push(page);
        }
        for load in peers.node.loads_from_others() {
            if let Some(file) = peers.files.get(load.file) {
                let pages = load.pages.iter().map(|&page| file.page_id(page));
                missing.entry(load.load).or_default().extend(pages);
            }
        }
        for (load, pages) in missing {
            if pages.iter().all(|&page| self.core.state().is_unneeded(page)) {
                if let Some(peers) = &mut self.peers {
                    peers.node.cancel_load(now, load);
                    peers.circulating.iter_mut().for_each(|it| it.cancel_load(load));
                }
                self.fail_pages(load, &pages, now);
            }
        }
    }
}
