//! What comes out of the state machine: the decisions that the caller carries out.

use serde::{Deserialize, Serialize};

use crate::ids::{ChunkIndex, LoadId, PageId, ScanId, TableId, WorkerIndex};

/// What the caller has to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Read these pages, in this order if it matters, and report each with [`crate::ActiveBufferManager::page_loaded`] or
    /// [`crate::ActiveBufferManager::page_failed`]. Their room is taken.
    Load {
        /// Names the load in the reports.
        load: LoadId,
        /// The scan that it is for.
        scan: ScanId,
        /// The table.
        table: TableId,
        /// The chunk.
        chunk: ChunkIndex,
        /// The pages.
        pages: Vec<PageId>,
        /// Whether it goes before what is still queued of loads that are not urgent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        urgent: bool,
    },
    /// This load is urgent from now on: a scan that cuts the line waits for a page of it.
    Escalate {
        /// The load.
        load: LoadId,
    },
    /// Forget the bytes of this page.
    Evict {
        /// The page.
        page: PageId,
    },
    /// Hand this chunk to the worker. Its pages stay until [`crate::ActiveBufferManager::release_chunk`].
    Deliver {
        /// The scan.
        scan: ScanId,
        /// The worker that asked.
        worker: WorkerIndex,
        /// The chunk.
        chunk: ChunkIndex,
    },
    /// Tell the worker that nothing is left for it.
    Finish {
        /// The scan.
        scan: ScanId,
        /// The worker that asked.
        worker: WorkerIndex,
    },
    /// The scan cannot go on: this page, which it needs, could not be read. All its workers end.
    Fail {
        /// The scan.
        scan: ScanId,
        /// The page.
        page: PageId,
    },
}

impl Action {
    /// Whether it tells this worker something.
    pub(crate) fn answers(&self, to_scan: ScanId, to_worker: WorkerIndex) -> bool {
        match self {
            Action::Deliver { scan, worker, .. } | Action::Finish { scan, worker } => {
                (*scan, *worker) == (to_scan, to_worker)
            }
            _ => false,
        }
    }

    /// The scan that is told something by this, if it is an answer to one.
    pub(crate) fn answered_scan(&self) -> Option<ScanId> {
        match self {
            Action::Deliver { scan, .. }
            | Action::Finish { scan, .. }
            | Action::Fail { scan, .. } => Some(*scan),
            Action::Load { .. } | Action::Escalate { .. } | Action::Evict { .. } => None,
        }
    }
}
