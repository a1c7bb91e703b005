//! One of the workers that share a scan.

use crate::ids::{ChunkIndex, Time};

/// The place of a worker in the queue of all that wait: a worker that asked earlier has a lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Ticket(pub(crate) u64);

/// The state of a worker of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worker {
    /// It has not asked for a chunk yet.
    Idle,
    /// It asked at this time and was not answered yet.
    Waiting { since: Time, ticket: Ticket },
    /// It works on a chunk, which was `found` in the pool when it asked; `pinned` until it has released the pages,
    /// `active` until its query pauses it.
    Busy { chunk: ChunkIndex, since: Time, found: bool, pinned: bool, active: bool },
    /// It was told that no chunk is left.
    Finished,
    /// It was withdrawn: nothing is read for it.
    Gone,
}
