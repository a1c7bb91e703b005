//! The decisions of the state machine, which the caller carries out.

use serde::{Deserialize, Serialize};

use crate::ids::{ChunkIndex, GroupIndex, LoadId, PageId, ScanId, TableId, TicketId, WorkerIndex};

/// A decision to be carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Read these pages, in this order if it matters, and report each with [`crate::ActiveBufferManager::page_loaded`]
    /// or [`crate::ActiveBufferManager::page_failed`]. Their space in the pool is reserved already.
    Load {
        /// The load, as named in reports of its pages.
        load: LoadId,
        /// The scan that it is for.
        scan: ScanId,
        /// The table.
        table: TableId,
        /// The chunk.
        chunk: ChunkIndex,
        /// The pages.
        pages: Vec<PageId>,
        /// Whether its requests go before queued requests of loads that are not urgent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        urgent: bool,
    },
    /// This load is urgent from now on, because a tiny scan waits for a page of it.
    Escalate {
        /// The load.
        load: LoadId,
    },
    /// Drop the bytes of this page.
    Evict {
        /// The page.
        page: PageId,
    },
    /// Hand this chunk to the worker. Its pages stay in the pool until [`crate::ActiveBufferManager::release_chunk`].
    Deliver {
        /// The scan.
        scan: ScanId,
        /// The worker that asked.
        worker: WorkerIndex,
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// Tell the worker that no chunk is left.
    Finish {
        /// The scan.
        scan: ScanId,
        /// The worker that asked.
        worker: WorkerIndex,
    },
    /// End all workers of the scan: this page, which it needs, could not be read. Nothing more is delivered to it.
    /// Prune it of all that it needs, step by step if that is much, or cancel it. Until then its pages count as needed.
    Fail {
        /// The scan.
        scan: ScanId,
        /// The page.
        page: PageId,
    },
    /// The pool has no space for the chunk of this scan, which reads for a [`RemoteQuery`](crate::RemoteQuery). Cancel the
    /// scan, and read its pages without the pool, or let the other server read them: nothing more is delivered to it.
    /// Waiting could deadlock: what fills this pool may itself wait for that server.
    NoSpace {
        /// The scan.
        scan: ScanId,
    },
    /// No scan needs this slice any more, of which the caller holds a column decoded: see
    /// [`slice_decoded`](crate::ActiveBufferManager::slice_decoded). Workers that were handed the chunk may still be
    /// about to use it.
    ///
    /// It is decided when the last scan that needs the slice ([`State::slice_interest`](crate::State::slice_interest)) is
    /// handed its chunk, is pruned of it or ends, and when the slice is decoded although no scan needs it. It comes out
    /// once for each of these, after all other actions, and only if then still no scan needs the slice and it was not
    /// dropped meanwhile.
    Unneeded {
        /// The table.
        table: TableId,
        /// The chunk.
        chunk: ChunkIndex,
        /// The column group.
        group: GroupIndex,
    },
    /// Memory [requested](crate::ActiveBufferManager::request_memory) under this ticket is handed out. It is free once the
    /// pages of all [`Evict`](Self::Evict)s that came out before are dropped.
    GrantMemory {
        /// The ticket.
        ticket: TicketId,
        /// The bytes requested.
        bytes: u64,
    },
}

impl Action {
    /// Whether this action answers the given worker.
    pub(crate) fn answers(&self, to_scan: ScanId, to_worker: WorkerIndex) -> bool {
        match self {
            Action::Deliver { scan, worker, .. } | Action::Finish { scan, worker } => {
                (*scan, *worker) == (to_scan, to_worker)
            }
            _ => false,
        }
    }

    /// The scan that this action answers, if it answers one.
    pub(crate) fn answered_scan(&self) -> Option<ScanId> {
        match self {
            Action::Deliver { scan, .. }
            | Action::Finish { scan, .. }
            | Action::NoSpace { scan }
            | Action::Fail { scan, .. } => Some(*scan),
            Action::Load { .. }
            | Action::Escalate { .. }
            | Action::Evict { .. }
            | Action::Unneeded { .. }
            | Action::GrantMemory { .. } => None,
        }
    }
}
