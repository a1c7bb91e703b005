//! Why a command is refused: one type an operation.

use std::ops::Range;

use crate::ids::{ChunkIndex, GroupIndex, PageId, ScanId, TableId, WorkerIndex};

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
    /// The table has no such chunk.
    #[error("the table has no chunk {0}")]
    UnknownChunk(ChunkIndex),
    /// There is no such page.
    #[error("there is no page {0}")]
    UnknownPage(PageId),
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

/// Why chunks cannot be added to a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddChunksError {
    /// The table was never registered or was removed.
    #[error("table {0} is not registered")]
    UnknownTable(TableId),
    /// There is no such page.
    #[error("there is no page {0}: add pages before the chunks that list them")]
    UnknownPage(PageId),
    /// A page would be read once but counted twice.
    #[error("a chunk lists page {0} twice")]
    PageTwice(PageId),
    /// A chunk without rows would be delivered for nothing.
    #[error("a chunk has no rows")]
    NoRows,
    /// A chunk has to say of each column group which pages hold it.
    #[error("a chunk has {slices} slices, but the table has {groups} column groups")]
    SliceCount {
        /// Slices of the chunk.
        slices: usize,
        /// Column groups of the table.
        groups: usize,
    },
}

/// Why chunks cannot be taken out of a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetireChunksError {
    /// The table was never registered or was removed.
    #[error("table {0} is not registered")]
    UnknownTable(TableId),
    /// The table has no such chunk.
    #[error("the table has no chunk {0}")]
    UnknownChunk(ChunkIndex),
    /// A scan needs it, a worker uses it, or it is being read.
    #[error("chunk {0} is in use: wait for the scans that need it and for its loads first")]
    InUse(ChunkIndex),
}

/// Why pages cannot be removed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemovePagesError {
    /// They were not added, or removed before.
    #[error("not all of the pages {} to {} are there", .0.start, .0.end)]
    UnknownPage(Range<PageId>),
    /// A table lists it, or it is used or being read.
    #[error("page {0} is in use: retire the chunks that list it and wait for its loads first")]
    InUse(PageId),
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
