//! The way to another server: its queues, and whether it can be reached.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use coscan_runtime::{CirculatingMessage, Outgoing, OutgoingFragment};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::traffic::Traffic;

/// The way to another server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) address: String,
    /// The queue of requests and short messages.
    control: UnboundedSender<Queued>,
    pages: UnboundedSender<Queued>,
    fragments: UnboundedSender<OutgoingFragment>,
    state: Arc<LinkState>,
}

/// A message to be sent.
#[derive(Debug)]
pub(crate) enum Queued {
    Message(Box<Outgoing>),
    /// A message about the servers that are alive.
    Membership(Vec<u8>),
    Circulating(CirculatingMessage),
}

/// Whether another server can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkStatus {
    /// It cannot be reached.
    Down,
    /// It can be reached, but has no connection back.
    OneWay,
    /// There are connections both ways.
    Up,
}

#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) status: watch::Sender<LinkStatus>,
    pub(crate) traffic: Traffic,
    /// The number of times that a connection was lost.
    pub(crate) losses: AtomicU64,
}

/// Messages that wait to be sent.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) address: String,
    pub(crate) control: UnboundedReceiver<Queued>,
    pub(crate) pages: UnboundedReceiver<Queued>,
    pub(crate) state: Arc<LinkState>,
    /// Whether each frame that was begun was written completely.
    pub(crate) is_between_frames: bool,
}

/// Fragments that wait to be sent to another server.
#[derive(Debug)]
pub(crate) struct FragmentQueue {
    pub(crate) address: String,
    pub(crate) fragments: UnboundedReceiver<OutgoingFragment>,
    pub(crate) state: Arc<LinkState>,
}

impl Link {
    pub(crate) fn new(address: String) -> (Self, Queue, FragmentQueue) {
        let (control, control_queue) = unbounded_channel();
        let (pages, pages_queue) = unbounded_channel();
        let (fragments, fragments_queue) = unbounded_channel();
        let status = watch::Sender::new(LinkStatus::Down);
        let state =
            Arc::new(LinkState { status, traffic: Traffic::default(), losses: AtomicU64::new(0) });
        let queue = Queue {
            address: address.clone(),
            control: control_queue,
            pages: pages_queue,
            state: Arc::clone(&state),
            is_between_frames: true,
        };
        let fragment_queue = FragmentQueue {
            address: address.clone(),
            fragments: fragments_queue,
            state: Arc::clone(&state),
        };
        (Self { address, control, pages, fragments, state }, queue, fragment_queue)
    }

    /// Queues a fragment. It stays queued while there is no connection, unless it is not to be sent any more.
    pub(crate) fn send_fragment(&self, fragment: OutgoingFragment) {
        let _ = self.fragments.send(fragment);
    }

    /// Queues a message. While there is no connection it is lost.
    pub(crate) fn send(&self, queued: Queued) {
        if self.status() != LinkStatus::Down {
            let has_pages =
                matches!(&queued, Queued::Message(message) if !message.pages.is_empty());
            let queue = if has_pages { &self.pages } else { &self.control };
            let _ = queue.send(queued);
        }
    }

    pub(crate) fn status(&self) -> LinkStatus {
        *self.state.status.borrow()
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.state.traffic
    }
}
