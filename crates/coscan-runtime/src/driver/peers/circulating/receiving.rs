//! The messages of neighbours on the ring, and the fragments that they take.

use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use coscan_core::Time;
use coscan_ring::{CirculateMessage, FragmentHeader, NodeId};

use super::PassedName;
use crate::driver::handle::Driver;
use crate::driver::state::State;
use crate::peers::{CirculatingMessage, FragmentId};

/// The most files of other servers' requests whose names are kept.
const FILES_MAX: usize = 4096;

/// The most bytes of such a name.
const NAME_BYTES_MAX: usize = 8 << 10;

impl Driver {
    pub(crate) fn receive_circulating(self: &Arc<Self>, message: CirculatingMessage) {
        self.call(|state, now| state.receive_circulating(message, now));
    }

    /// Reserves space for the next fragment of the predecessor, or registers `waker` for later. Returns the most bytes
    /// that it may have; `None` if nothing goes round here.
    pub(crate) fn poll_fragment_space(self: &Arc<Self>, waker: &Waker) -> Poll<Option<u64>> {
        self.call(|state, _| state.poll_fragment_space(waker))
    }

    pub(crate) fn fragment_came(
        self: &Arc<Self>,
        header: FragmentHeader<FragmentId>,
        bytes: Bytes,
    ) {
        self.call(|state, now| state.fragment_came(header, bytes, now));
    }
}

impl State {
    /// Handles a message of a neighbour that is no fragment.
    fn receive_circulating(
        &mut self,
        CirculatingMessage { files, message }: CirculatingMessage,
        now: Time,
    ) {
        let Some(circulating) = self.circulating() else { return };
        if matches!(message, CirculateMessage::Fragment(_)) {
            return; // It has no space, and its bytes are missing.
        }
        for name in files.into_iter().filter(|name| name.len_bytes() <= NAME_BYTES_MAX) {
            let count = circulating.names.len();
            match circulating.names.entry(name.identity()) {
                Entry::Occupied(mut known) => known.get_mut().was_used = true,
                Entry::Vacant(new) if count < FILES_MAX => {
                    new.insert(PassedName { name, was_used: true });
                }
                Entry::Vacant(_) => {}
            }
        }
        circulating.ring.handle(now, message);
    }

    fn poll_fragment_space(&mut self, waker: &Waker) -> Poll<Option<u64>> {
        let Some(circulating) = self.circulating() else { return Poll::Ready(None) };
        if circulating.ring.reserve() {
            return Poll::Ready(Some(circulating.bytes_max));
        }
        if !circulating.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            circulating.waiting.push(waker.clone());
        }
        Poll::Pending
    }

    fn fragment_came(&mut self, header: FragmentHeader<FragmentId>, bytes: Bytes, now: Time) {
        let Some(peers) = self.peers.as_deref_mut() else { return };
        let Some(circulating) = &mut peers.circulating else { return };
        peers.report.bytes_received += bytes.len() as u64;
        // If it is in transit already, those bytes stay, since they may be being sent.
        circulating.in_transit.entry(header.fragment).or_insert_with(|| Arc::new(bytes));
        circulating.ring.handle(now, CirculateMessage::Fragment(header));
    }

    pub(in crate::driver) fn fragment_sent(&mut self, to: NodeId, fragment: FragmentId, now: Time) {
        if let Some(circulating) = self.circulating() {
            circulating.ring.sent(now, to, fragment);
        }
    }

    pub(in crate::driver) fn fragment_lost(&mut self, now: Time) {
        if let Some(circulating) = self.circulating() {
            circulating.ring.unreserve(now);
        }
    }
}
