//! One of the workers that share a scan.

use crate::ids::{ChunkIndex, Time};

/// The place of a worker in the queue of all waiting workers. A worker that asked earlier has a lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Ticket(pub(crate) u64);

/// The state of a worker of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worker {
    /// The worker has not asked for a chunk yet.
    Idle,
    /// The worker asked at this time and was not answered yet.
    Waiting { since: Time, ticket: Ticket },
    /// The worker has a chunk, which was `found` in the pool when it asked. It is `pinned` until the pages are
    /// released, and the worker is `active` until its query pauses it.
    Busy { chunk: ChunkIndex, since: Time, found: bool, pinned: bool, active: bool },
    /// The worker was told that no chunk is left.
    Finished,
    /// The worker was withdrawn: nothing is read for it.
    Gone,
}
