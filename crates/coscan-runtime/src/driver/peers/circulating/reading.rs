//! Pages of this server's files that the ring reads: its own node is asked for them, as another server would ask.

use std::sync::Arc;

use coscan_core::{RemoteQuery, Time};
use coscan_ring::{GetId, Message, Served};

use super::WaitingLoad;
use crate::driver::peers::acting::bytes_to_send;
use crate::driver::state::State;
use crate::peers::FragmentId;

impl State {
    /// Reads a fragment of this server for the load that waits for it.
    pub(super) fn read_awaited(&mut self, fragment: FragmentId, now: Time) {
        let Some(circulating) = self.circulating() else { return };
        if let Some(WaitingLoad { load, id, .. }) = circulating.wanted.remove(&fragment) {
            circulating.ring.withdraw(fragment);
            self.read(load, &[id], now);
        }
    }

    /// Asks this server's own node for a page, as another server would.
    pub(super) fn read_to_inject(&mut self, fragment: FragmentId, now: Time) {
        // It was to come by, and got lost. The node would wait for this load.
        self.read_awaited(fragment, now);
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let (id, name) = (peers.node.id(), peers.name_of(fragment.file).cloned());
        let Some(circulating) = &mut peers.circulating else { return };
        let Some(file) = name else { return circulating.ring.unreadable(now, fragment) };
        let get = GetId(circulating.next_get);
        circulating.next_get += 1;
        circulating.reading.insert(get, fragment);
        let page = fragment.start..fragment.end;
        let (pages, query) = (vec![page], RemoteQuery::default());
        // It may be answered at once, which may cause further reads: at most `READS_MAX` deep.
        self.receive(id, Message::Get { get, file, pages, query }, Vec::new(), now);
    }

    /// Handles an answer of this server's own node to the ring.
    pub(in crate::driver::peers) fn answer_own_request(&mut self, message: Message) {
        let now = self.core.state().now();
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        match message {
            Message::Pages { get, file, pages } => {
                let served = Served { node: peers.node.id(), get };
                let Some(shared) = peers.files.get(file) else { return };
                for page in pages {
                    let bypassed = peers.bypassing.remove(&(served, page));
                    let bytes = bytes_to_send(&mut peers.report, bypassed, || {
                        self.frames.get(&shared.page_id(page)).cloned()
                    });
                    if let Some(fragment) = circulating.reading.remove(&get) {
                        // A copy by another owner may be in transit, and queued.
                        circulating.in_transit.entry(fragment).or_insert_with(|| Arc::new(bytes));
                        circulating.ring.read(now, fragment);
                    }
                    peers.node.sent(served, page);
                }
            }
            Message::NoRoom { get } | Message::Failed { get } => {
                if let Some(fragment) = circulating.reading.remove(&get) {
                    circulating.ring.unreadable(now, fragment);
                }
            }
            _ => {}
        }
    }
}
