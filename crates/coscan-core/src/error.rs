//! The errors of commands, one type for each operation.

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
    /// No page has this id.
    #[error("there is no page {0}")]
    UnknownPage(PageId),
    /// All scan ids have been used.
    #[error("no scan can start any more: {} have, restart the process", u32::MAX)]
    NoIdLeft,
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
        /// Bytes that the pool may hold.
        pool_bytes: u64,
        /// Bytes of the largest chunk.
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
    /// No page has this id.
    #[error("there is no page {0}: add pages before the chunks that list them")]
    UnknownPage(PageId),
    /// A page would be read once but counted twice.
    #[error("a chunk lists page {0} twice")]
    PageTwice(PageId),
    /// A chunk needs rows: without any it would be delivered for nothing.
    #[error("a chunk has no rows")]
    NoRows,
    /// A chunk has one list of pages for each column group.
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
    /// A scan needs the chunk, a worker uses it, or it is being read.
    #[error("chunk {0} is in use: wait for the scans that need it and for its loads first")]
    InUse(ChunkIndex),
}

/// Why pages cannot be removed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemovePagesError {
    /// Some of them were not added, or removed before.
    #[error("pages {} to {} were not all added, or some were removed", .0.start, .0.end)]
    UnknownPage(Range<PageId>),
    /// A table lists the page, or it is in use or being read.
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

/// Memory was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{bytes} bytes of memory are missing: give coscan more, or run less at once")]
pub struct MissingMemory {
    /// The bytes that are missing.
    pub bytes: u64,
}

impl MissingMemory {
    /// Whether there are as many bytes as are needed.
    pub(crate) fn check(needed_bytes: u64, bytes: u64) -> Result<(), Self> {
        match needed_bytes.saturating_sub(bytes) {
            0 => Ok(()),
            bytes => Err(Self { bytes }),
        }
    }
}

/// Why a worker cannot ask for a chunk.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The scan was cancelled or never started.
    #[error("scan {0} is not running")]
    UnknownScan(ScanId),
    /// The scan failed; its error was reported.
    #[error("scan {0} has failed")]
    Failed(ScanId),
    /// The scan has fewer workers.
    #[error("scan {0} has no worker {1}")]
    UnknownWorker(ScanId, WorkerIndex),
    /// The worker asked before and was not answered yet.
    #[error("worker {1} of scan {0} is already waiting")]
    AlreadyWaiting(ScanId, WorkerIndex),
}
