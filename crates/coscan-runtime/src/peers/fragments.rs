//! Fragments that go round a ring of servers, as a [`Network`](crate::Network) sees them.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use coscan_ring::{CirculateMessage, FragmentHeader, NodeId};
use serde::{Deserialize, Serialize};

use crate::driver::{Driver, Message};
use crate::peers::{FileName, SentPages};
use crate::sync::destructor::InDestructor;

/// A page that goes round, by the identity of its file and its range of bytes in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FragmentId {
    pub(crate) file: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl FragmentId {
    /// The length in bytes; 0 if it ends before it begins.
    #[must_use]
    pub fn len_bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A message to a neighbour on the ring, for pages that go round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CirculatingMessage {
    /// The files that requests name. A server need not have a file open to pass a request on.
    pub files: Vec<FileName>,
    /// The message.
    pub message: CirculateMessage<FragmentId>,
}

/// A fragment for the successor on the ring.
#[derive(Debug)]
pub struct OutgoingFragment {
    /// The successor.
    pub to: NodeId,
    /// The header, which precedes its bytes.
    pub header: FragmentHeader<FragmentId>,
    pub(crate) bytes: Weak<Bytes>,
    pub(crate) owner: Weak<dyn SentPages>,
}

impl OutgoingFragment {
    /// The bytes of the fragment; `None` if it is not to be sent any more.
    #[must_use]
    pub fn bytes(&self) -> Option<Arc<Bytes>> {
        self.bytes.upgrade()
    }

    /// Notes that the link has taken the whole fragment.
    pub fn sent(self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.fragment_taken(self.to, self.header.fragment);
        }
    }
}

/// Space for the next fragment of the predecessor. Drop it if none comes, which frees its buffer.
#[derive(Debug)]
pub struct FragmentSpace {
    /// The driver; `None` once the fragment has come.
    driver: Option<Arc<Driver>>,
    bytes_max: u64,
}

impl FragmentSpace {
    pub(crate) fn new(driver: Arc<Driver>, bytes_max: u64) -> Self {
        Self { driver: Some(driver), bytes_max }
    }

    /// The most bytes that the fragment may have.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Hands over a fragment. If its length is not the one in the header, it counts as lost.
    pub fn fill(mut self, header: FragmentHeader<FragmentId>, bytes: Bytes) {
        let is_whole = bytes.len() as u64 == header.fragment.len_bytes();
        if let Some(driver) = self.driver.take_if(|_| is_whole) {
            driver.fragment_came(header, bytes);
        }
    }
}

impl Drop for FragmentSpace {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if let Some(driver) = self.driver.take() {
            driver.post(Message::FragmentLost);
        }
    }
}
