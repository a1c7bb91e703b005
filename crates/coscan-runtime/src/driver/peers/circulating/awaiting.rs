//! Loads that wait for fragments to pass.

use bytes::Bytes;
use coscan_core::{LoadId, PageIndex, Time};
use coscan_ring::FileId;

use super::WaitingLoad;
use crate::driver::state::State;
use crate::peers::FragmentId;

impl State {
    /// Waits for the pages of these that go round. Returns the others.
    pub(in crate::driver::peers) fn await_fragments(
        &mut self,
        load: LoadId,
        file: FileId,
        mut pages: Vec<PageIndex>,
        now: Time,
    ) -> Vec<PageIndex> {
        let Some(peers) = self.peers.as_deref_mut() else { return pages };
        if peers.circulating.as_ref().is_none_or(|circulating| circulating.ring.is_alone()) {
            return pages;
        }
        pages.retain(|&page| {
            let fragment = peers.fragment(file, page);
            let owner = peers.node.owner_of(file, page);
            let (Some(fragment), Some(circulating), Some(shared)) =
                (fragment, &mut peers.circulating, peers.files.get(file))
            else {
                return true;
            };
            // A server reads its own pages itself, unless they come by.
            if owner == peers.node.id() && !circulating.ring.goes_round(fragment) {
                return true;
            }
            let wanted = WaitingLoad { load, file, page, id: shared.page_id(page) };
            circulating.wanted.insert(fragment, wanted);
            circulating.ring.request(now, fragment, owner);
            false
        });
        pages
    }

    /// Handles a fragment that a load waits for and that passes.
    pub(super) fn fragment_taken(&mut self, fragment: FragmentId, now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        let bytes = circulating.in_transit.get(&fragment).expect("it is in transit");
        let bytes = Bytes::clone(bytes);
        let Some(waiting) = circulating.wanted.remove(&fragment) else { return };
        let WaitingLoad { load, id, .. } = waiting;
        peers.report.bytes_taken += bytes.len() as u64;
        if let Some(in_flight) = self.loads.get(&load) {
            in_flight.counters.count_from_peer(&bytes);
        }
        self.pages_came(load, vec![(id, Ok(bytes))], now);
    }

    /// Reads from the store a fragment that a load waits for and that does not come.
    pub(super) fn read_fragment_instead(&mut self, fragment: FragmentId, now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        let Some(WaitingLoad { load, id, .. }) = circulating.wanted.remove(&fragment) else {
            return;
        };
        peers.report.bytes_read_instead += fragment.len_bytes();
        self.read(load, &[id], now);
    }

    /// Reads from its store what loads wait for of a file that is no longer shared.
    pub(in crate::driver::peers) fn await_no_more(&mut self, file: FileId, now: Time) {
        let Some(circulating) = self.circulating() else { return };
        let of_file = circulating.wanted.iter().filter(|(_, wanted)| wanted.file == file);
        let fragments: Vec<_> = of_file.map(|(&fragment, _)| fragment).collect();
        for &fragment in &fragments {
            circulating.ring.withdraw(fragment);
        }
        // Fragments that have passed meanwhile are taken first.
        self.settle_circulating(now);
        fragments.into_iter().for_each(|fragment| self.read_fragment_instead(fragment, now));
    }
}
