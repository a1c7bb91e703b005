//! The beginnings and results of loads.

use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{ChunkIndex, LoadId, PageId, ScanId, Time};

use super::effects::DecidedLoad;
use super::load_in_flight::LoadInFlight;
use super::message::PageRead;
use super::state::State;
use crate::io::load::Urgency;
use crate::observe::events::EventKind;

impl State {
    /// Begins a load of core: its pages are read from a store, or come from other servers.
    pub(super) fn begin_load(
        &mut self,
        (load, scan): (LoadId, ScanId),
        chunk: ChunkIndex,
        pages: &[PageId],
        is_urgent: bool,
        now: Time,
    ) {
        let (parts, counters) = match self.scans.get(&scan) {
            Some(scan) => (Arc::clone(&scan.parts), Arc::clone(&scan.counters)),
            None => {
                (self.served_parts(scan).expect("core reads for scans that run"), Arc::default())
            }
        };
        let (urgency, missing) = (Urgency::new(is_urgent), pages.len());
        let in_flight = LoadInFlight { urgency, chunk, parts, counters, missing, failed: 0 };
        self.loads.insert(load, in_flight);
        self.totals.loads += 1;
        let own = self.ask_peers((load, scan), chunk, pages, now);
        self.read(load, &own, now);
    }

    /// Reads pages of a load from their store, unless it was given up.
    pub(super) fn read(&mut self, load: LoadId, pages: &[PageId], now: Time) {
        let Some(in_flight) = self.loads.get(&load).filter(|_| !pages.is_empty()) else { return };
        let LoadInFlight { urgency, chunk, parts, counters, .. } = in_flight;
        self.effects.loads.push(DecidedLoad {
            id: load,
            pages: parts.pages(*chunk, pages),
            parts: Arc::clone(parts),
            urgency: urgency.clone(),
            counters: Arc::clone(counters),
        });
        self.count_reading(pages, now);
    }

    /// Handles pages of a load that have been read from the store, or cannot be.
    pub(super) fn pages_read(&mut self, load: LoadId, pages: Vec<PageRead>, now: Time) {
        self.count_read(&pages, now);
        self.pages_came(load, pages, now);
    }

    /// Counts pages that were read from the store.
    pub(super) fn count_read(&mut self, pages: &[PageRead], now: Time) {
        self.count_has_read(pages.iter().map(|(page, read)| (*page, read.is_ok())), now);
        let read = pages.iter().filter_map(|(_, read)| read.as_ref().ok());
        self.totals.bytes_read += read.map(|bytes| bytes.len() as u64).sum::<u64>();
    }

    /// Handles pages of a load that have come, or will not.
    pub(super) fn pages_came(&mut self, load: LoadId, pages: Vec<PageRead>, now: Time) {
        let (count, mut failed) = (pages.len(), 0);
        for (page, read) in pages {
            match read {
                Ok(bytes) => self.page_loaded(load, page, bytes, now),
                Err(error) => {
                    failed += 1;
                    self.read_errors.insert(page, error);
                    self.core.page_failed(now, load, page);
                    self.tell_evicted(page, now);
                }
            }
        }
        self.pages_over(load, count, failed, now);
    }

    /// Notes that more pages of a load are reported, some of them failed. The load ends with the last one.
    pub(super) fn pages_over(&mut self, load: LoadId, count: usize, failed: usize, now: Time) {
        let Some(in_flight) = self.loads.get_mut(&load) else { return };
        in_flight.missing -= count;
        in_flight.failed += failed;
        if in_flight.missing == 0 {
            let pages_failed = in_flight.failed;
            self.loads.remove(&load);
            self.taps.send(now, || EventKind::LoadEnded { load, pages_failed });
            self.remove_unused(now);
        }
    }

    /// Ends the reading of these pages of a load, unless a scan needs any of them.
    pub(super) fn give_up(&mut self, load: LoadId, pages: &[PageId], now: Time) -> bool {
        if self.is_broken() {
            return true;
        }
        if pages.iter().any(|&page| !self.core.state().is_unneeded(page)) {
            return false;
        }
        self.count_has_read(pages.iter().map(|&page| (page, false)), now);
        self.fail_pages(load, pages, now);
        true
    }

    /// Fails pages of a load that will not come and that no scan needs.
    pub(super) fn fail_pages(&mut self, load: LoadId, pages: &[PageId], now: Time) {
        for &page in pages {
            self.core.page_failed(now, load, page);
            self.tell_evicted(page, now);
        }
        self.pages_over(load, pages.len(), pages.len(), now);
    }

    fn page_loaded(&mut self, load: LoadId, page: PageId, bytes: Bytes, now: Time) {
        self.frames.insert(page, bytes);
        self.core.page_loaded(now, load, page);
    }
}
