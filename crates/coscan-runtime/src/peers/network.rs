//! What carries messages to other servers.

use std::fmt;
use std::ops::Range;
use std::sync::Weak;

use bytes::Bytes;
use coscan_core::PageIndex;
use coscan_ring::{NodeId, Served};

use crate::driver::{Driver, Message};
use crate::peers::FileName;
use crate::sync::destructor::InDestructor;

/// A message about versions of files, and pages by the bytes of the file that they are.
pub type PeerMessage = coscan_ring::Message<FileName, Range<u64>>;

/// Carries messages to other servers. It may lose, delay and reorder them, but not alter them.
pub trait Network: fmt::Debug + Send + Sync {
    /// Queues a message. It MUST NOT wait, nor call the manager back.
    ///
    /// The pages stay in use until the message is dropped: when they are sent, or nobody takes them.
    fn send(&self, message: Outgoing);
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

/// Says when it is dropped that the network has taken these pages of a request, or lost them.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) driver: Weak<Driver>,
    pub(crate) served: Served,
    pub(crate) pages: Vec<PageIndex>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if let Some(driver) = self.driver.upgrade() {
            let pages = std::mem::take(&mut self.pages);
            driver.post(Message::PagesTaken { served: self.served, pages });
        }
    }
}
