//! Why a command is refused: one type an operation.

use crate::ids::{GroupIndex, PageIndex, ScanId, TableId, WorkerIndex};

/// Why a scan cannot start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartScanError {
    /// The table was never registered or was removed.
    #[error("table {0} is not registered")]
    UnknownTable(TableId),
    /// The table has no such column group.
    #[error("the table has no column group {0}")]
    UnknownGroup(GroupIndex),
    /// The table has no such page.
    #[error("the table has no page {0}")]
    UnknownPage(PageIndex),
    /// A scan without workers would never end.
    #[error("a scan needs at least one worker")]
    NoWorkers,
    /// A scan of weight 0 would never be served.
    #[error("a scan has a weight of at least 1")]
    NoWeight,
    /// The pool cannot hold the largest chunk of the scan, so the scan could never be handed it.
    #[error(
        "the pool holds {pool_bytes} bytes, but one chunk of this scan takes {chunk_bytes}: \
         give the pool at least that much, or make chunks smaller"
    )]
    PoolTooSmall {
        /// What the pool may hold.
        pool_bytes: u64,
        /// What the largest chunk takes.
        chunk_bytes: u64,
    },
}

/// Why a table cannot be removed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveTableError {
    /// The table was never registered or was removed before.
    #[error("table {0} is not registered")]
    UnknownTable(TableId),
    /// Scans of the table still run, or pages of it are being read.
    #[error("table {0} is in use: cancel its scans and wait for its loads first")]
    InUse(TableId),
}

/// Why a worker cannot ask for a chunk.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The scan was cancelled or never started.
    #[error("scan {0} does not run")]
    UnknownScan(ScanId),
    /// The scan failed; its error was reported.
    #[error("scan {0} has failed")]
    Failed(ScanId),
    /// The scan has fewer workers.
    #[error("scan {0} has no worker {1}")]
    UnknownWorker(ScanId, WorkerIndex),
    /// The worker asked before and waits.
    #[error("worker {1} of scan {0} waits already")]
    AlreadyWaiting(ScanId, WorkerIndex),
}
