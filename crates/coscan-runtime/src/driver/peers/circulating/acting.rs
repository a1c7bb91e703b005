//! The actions of the ring.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{PageIndex, Time};
use coscan_ring::{CirculateAction, CirculateMessage, FileId, FragmentHeader, NodeId};

use super::{Circulating, TRANSIT_BUFFERS, WaitingLoad};
use crate::driver::peers::Peers;
use crate::driver::state::State;
use crate::peers::{CirculatingMessage, FileName, FragmentId, OutgoingFragment};

impl Peers {
    /// The name of the file with that identity.
    pub(super) fn name_of(&self, file: u64) -> Option<&FileName> {
        let circulating = self.circulating.as_ref();
        let passed = circulating.and_then(|circulating| circulating.names.get(&file));
        let open = self.files.by_identity(file);
        open.map(|file| &*file.name).or(passed.map(|passed| &passed.name))
    }

    /// The fragment that a page of a shared file is, if it is small enough.
    pub(super) fn fragment(&self, file: FileId, page: PageIndex) -> Option<FragmentId> {
        let (shared, circulating) = (self.files.get(file)?, self.circulating.as_ref()?);
        let range = shared.range(page);
        let fragment =
            FragmentId { file: shared.name.identity(), start: range.start, end: range.end };
        (fragment.len_bytes() <= circulating.bytes_max).then_some(fragment)
    }
}

impl State {
    /// Carries out the actions of the ring. Returns false if there were none.
    pub(in crate::driver::peers) fn settle_circulating(&mut self, now: Time) -> bool {
        let mut was_any = false;
        while let Some(action) = self.circulating().and_then(|it| it.ring.poll_action()) {
            was_any = true;
            match action {
                CirculateAction::Send { to, message } => self.send_to_neighbour(to, message),
                CirculateAction::Read(fragment) => self.read_to_inject(fragment, now),
                CirculateAction::Take(fragment) => self.fragment_taken(fragment, now),
                CirculateAction::Release(fragment) => {
                    let released =
                        self.circulating().and_then(|it| it.in_transit.remove(&fragment));
                    self.effects.released.extend(released);
                }
                CirculateAction::GiveUp(fragment, _) => self.read_fragment_instead(fragment, now),
            }
        }
        self.wake_receivers();
        was_any
    }

    pub(super) fn circulating(&mut self) -> Option<&mut Circulating> {
        self.peers.as_mut()?.circulating.as_mut()
    }

    /// Wakes the tasks that wait to read fragments of the predecessor, if there is space now.
    fn wake_receivers(&mut self) {
        let Some(circulating) = self.circulating() else { return };
        if circulating.waiting.is_empty() {
            return;
        }
        if circulating.ring.status().transit_buffers < TRANSIT_BUFFERS {
            let waiting = mem::take(&mut circulating.waiting);
            self.effects.woken.extend(waiting);
        }
    }

    /// Wakes all tasks that wait for space, which find that there is no ring any more.
    pub(in crate::driver) fn wake_receivers_of_fragments(&mut self) {
        let waiting = self.circulating().map(|circulating| mem::take(&mut circulating.waiting));
        self.effects.woken.extend(waiting.into_iter().flatten());
    }

    fn send_to_neighbour(&mut self, to: NodeId, message: CirculateMessage<FragmentId>) {
        let Some(peers) = &mut self.peers else { return };
        self.effects.network.get_or_insert_with(|| Arc::clone(&peers.network));
        let requests = match &message {
            CirculateMessage::Fragment(header) => return self.send_fragment(to, *header),
            CirculateMessage::Requests(requests) => &requests[..],
            CirculateMessage::Unreadable { .. } => &[],
        };
        let files: BTreeSet<_> = requests.iter().map(|request| request.fragment.file).collect();
        let files = files.into_iter().filter_map(|file| peers.name_of(file).cloned()).collect();
        self.effects.circulating.push((to, CirculatingMessage { files, message }));
    }

    fn send_fragment(&mut self, to: NodeId, header: FragmentHeader<FragmentId>) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        let held = circulating.in_transit.get_mut(&header.fragment);
        let held = held.expect("what is in transit has its bytes");
        peers.report.bytes_sent += held.len() as u64;
        // If it was queued before, perhaps for another successor, that no longer counts.
        *held = Arc::new(Bytes::clone(held));
        let (bytes, owner) = (Arc::downgrade(held), peers.sent_pages.clone());
        self.effects.fragments.push(OutgoingFragment { to, header, bytes, owner });
    }

    /// Sets the members. Extents may have other owners now, which are asked.
    pub(in crate::driver::peers) fn set_circulating_members(
        &mut self,
        members: &[NodeId],
        now: Time,
    ) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        circulating.set_members(now, peers.node.id(), members);
        let mut own = Vec::new();
        for (&fragment, &WaitingLoad { file, page, .. }) in &circulating.wanted {
            let owner = peers.node.owner_of(file, page);
            if owner == peers.node.id() {
                own.push(fragment);
            } else {
                circulating.ring.request(now, fragment, owner);
            }
        }
        // The ring may be about to read it. That read would wait for the load that waits for the
        // ring.
        for fragment in own {
            self.read_awaited(fragment, now);
        }
    }
}
