//! The carrier of messages to other servers.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use coscan_core::PageIndex;
use coscan_ring::{NodeId, Served};

use crate::peers::file_name::FileName;
use crate::peers::{CirculatingMessage, FragmentId, OutgoingFragment};
use crate::sync::destructor::InDestructor;

/// A message about versions of files, with pages as ranges of bytes of their file.
pub type PeerMessage = coscan_ring::Message<FileName, Range<u64>>;

/// A carrier of messages to other servers. It may lose, delay and reorder them, but not alter them.
pub trait Network: fmt::Debug + Send + Sync {
    /// Queues a message. It MUST NOT wait, nor call the manager back.
    ///
    /// The pages stay in use until the message is dropped, because they were sent or are not taken.
    fn send(&self, message: Outgoing);

    /// Queues a message to a neighbour on the ring. It MUST NOT wait, nor call the manager back.
    fn send_circulating(&self, to: NodeId, message: CirculatingMessage);

    /// Queues a fragment for the successor on the ring. It MUST NOT wait, nor call the manager back. Fragments have a
    /// connection of their own, which stands still while the successor has no space. They are sent in order, each again
    /// and again until it is [sent](OutgoingFragment::sent) or has no [bytes](OutgoingFragment::bytes) any more. One
    /// that is abandoned before keeps its transit buffer until the members change.
    fn send_fragment(&self, fragment: OutgoingFragment);
}

/// A message to another server.
#[derive(Debug)]
pub struct Outgoing {
    /// The server.
    pub to: NodeId,
    /// The message.
    pub message: PeerMessage,
    /// The bytes of its pages, if it is [`Pages`](coscan_ring::Message::Pages).
    pub pages: Vec<Bytes>,
    pub(crate) _taken: Option<Taken>,
}

/// Opens files that others ask for.
pub(crate) trait FileOpener: fmt::Debug + Send + Sync {
    /// Opens a file, and reports the result.
    fn open(self: Arc<Self>, file: FileName);
}

/// The receiver of reports on pages that were sent.
pub(crate) trait SentPages: fmt::Debug + Send + Sync {
    /// Notes that the network has taken these pages of a request, or lost them. Called by a destructor, so it locks
    /// nothing.
    fn taken(self: Arc<Self>, served: Served, pages: Vec<PageIndex>);

    /// Notes that the link to the successor on the ring has taken a fragment. Not to be called by a destructor.
    fn fragment_taken(self: Arc<Self>, to: NodeId, fragment: FragmentId);
}

/// A guard that reports when dropped that the network has taken these pages of a request, or lost them.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) owner: Weak<dyn SentPages>,
    pub(crate) served: Served,
    pub(crate) pages: Vec<PageIndex>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if let Some(owner) = self.owner.upgrade() {
            owner.taken(self.served, std::mem::take(&mut self.pages));
        }
    }
}
