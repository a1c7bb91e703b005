//! One of the workers that share a scan.

use crate::ids::{ChunkIndex, Time};

/// A place in the queue of all workers that wait: who asked before has a lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Turn(pub(crate) u64);

/// Where a worker of a scan stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worker {
    /// It has not asked for a chunk yet.
    Idle,
    /// It asked at this time and got nothing yet.
    Waiting { since: Time, turn: Turn },
    /// It works on a chunk; `pinned` until it has released the pages, `active` until its query pauses it.
    Busy { chunk: ChunkIndex, since: Time, pinned: bool, active: bool },
    /// It was told that nothing is left.
    Finished,
    /// It was withdrawn: nothing is read for it.
    Gone,
}
