//! The actions of the scheduler as events, for observers. An observer that is too slow misses events and learns how
//! many. The scheduler never waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coscan_core::{ChunkIndex, LoadId, ScanId, TableId, Time, WorkerIndex};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::scans::request::ScanLabel;

/// An action of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time, counted since the manager was made.
    pub at: Duration,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The kinds of events. Chunks are those of [`BufferManager::pool_map`](crate::BufferManager::pool_map).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A scan was registered.
    ScanStarted {
        /// The scan.
        scan: ScanId,
        /// The table that it reads.
        table: TableId,
        /// The query and table that it is for.
        label: ScanLabel,
    },
    /// A page that a scan needs cannot be read, so the scan ends with an error.
    ScanFailed {
        /// The scan.
        scan: ScanId,
    },
    /// A scan has ended: it is done, was cancelled or has failed.
    ScanEnded {
        /// The scan.
        scan: ScanId,
    },
    /// Pages of a chunk are being read.
    LoadStarted {
        /// The load.
        load: LoadId,
        /// The scan that it was decided for.
        scan: ScanId,
        /// The table.
        table: TableId,
        /// The chunk.
        chunk: ChunkIndex,
        /// Bytes of the pages.
        bytes: u64,
        /// Running scans that need the first of the pages, this scan among them.
        scans: usize,
        /// Whether it goes before loads that are not urgent.
        is_urgent: bool,
    },
    /// All pages of a load have arrived or failed.
    LoadEnded {
        /// The load.
        load: LoadId,
        /// The number of pages reported last that could not be read.
        pages_failed: usize,
    },
    /// A worker was handed a chunk.
    ChunkDelivered {
        /// The scan.
        scan: ScanId,
        /// Its worker.
        worker: WorkerIndex,
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// A page has left the pool.
    PageEvicted {
        /// The table that listed it first, and the chunk there; `None` if no table lists it any more.
        place: Option<(TableId, ChunkIndex)>,
        /// Bytes of the page.
        bytes: u64,
    },
}

/// Events from now on, see [`BufferManager::subscribe`](crate::BufferManager::subscribe). Drop it to stop.
#[derive(Debug)]
pub struct Events {
    receiver: Receiver<Event>,
    lost: Arc<AtomicU64>,
}

impl Events {
    /// The next event; `None` if the manager is gone or has panicked.
    pub async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }

    /// The number of events that were dropped because this was full, since the last call.
    #[must_use]
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

/// The receivers of events. Without a receiver an event costs a look at an empty list.
#[derive(Debug, Default)]
pub(crate) struct Subscribers(Vec<Subscriber>);

#[derive(Debug)]
struct Subscriber {
    sender: Sender<Event>,
    lost: Arc<AtomicU64>,
}

impl Subscribers {
    /// Adds a receiver that holds at most `capacity` events, at least one.
    pub(crate) fn add(&mut self, capacity: usize) -> Events {
        let (sender, receiver) = channel(capacity.max(1));
        let lost = Arc::new(AtomicU64::new(0));
        self.0.push(Subscriber { sender, lost: Arc::clone(&lost) });
        Events { receiver, lost }
    }

    /// Sends an event to all receivers.
    pub(crate) fn send(&mut self, now: Time, kind: impl FnOnce() -> EventKind) {
        self.send_if(now, || Some(kind()));
    }

    /// Sends an event to all receivers, if there is one. Receivers that are gone are removed.
    pub(crate) fn send_if(&mut self, now: Time, kind: impl FnOnce() -> Option<EventKind>) {
        if self.0.is_empty() {
            return;
        }
        let Some(kind) = kind() else { return };
        let event = Event { at: Duration::from_nanos(now.0), kind };
        self.0.retain(|tap| match tap.sender.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                tap.lost.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        });
    }
}
