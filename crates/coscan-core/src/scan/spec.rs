//! The request of a query for chunks of a table, and the report on its progress.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::ids::{ChunkIndex, ComputationId, GroupIndex, PageId, TableId};

/// The order in which a scan takes its chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Any order: the policy decides.
    #[default]
    Any,
    /// Lowest chunk index first (I6).
    InOrder,
}

/// The priority of a scan, by its size in bytes relative to the others: shorter scans go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PriorityClass {
    /// A [lookup](crate::Scan::is_lookup), or a short scan of at most a few chunks.
    Tiny,
    /// A scan of a small part of the bytes of the largest running scan.
    Short,
    /// All others.
    Long,
}

/// The bounds below which scans have a higher priority. By default all are long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorityBounds {
    /// Below this [size](crate::Scan::size), in bytes, a scan is short.
    pub short_below: u64,
    /// A short scan of at most this number of [chunks](crate::Scan::chunks_in_all) is tiny.
    pub tiny_chunks_max: u64,
}

impl PriorityBounds {
    /// The class of a scan of `size` bytes and `chunks` chunks in all.
    #[must_use]
    pub fn priority_of(self, size: u64, chunks: u64) -> PriorityClass {
        if size >= self.short_below {
            PriorityClass::Long
        } else if chunks > self.tiny_chunks_max {
            PriorityClass::Short
        } else {
            PriorityClass::Tiny
        }
    }
}

/// The request of a query.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScanSpec {
    /// The table.
    pub table: TableId,
    /// The column groups; none if only the number of rows matters.
    pub groups: Vec<GroupIndex>,
    /// The chunks, as runs of neighbours.
    pub chunks: Vec<Range<ChunkIndex>>,
    /// The order in which it takes its chunks.
    pub order: Order,
    /// The number of workers that share the scan [CS11 §8.2.2], at least one.
    pub workers: usize,
    /// Its weight among the running scans, at least 1. Policies that schedule serve a scan of weight 2 as if it had
    /// half the work left and had waited twice as long.
    pub weight: u32,
    /// The pages of an index selection, in any order, that hold its rows, also of chunks that are added later; `None`
    /// if any page of its chunks may. If the pages of `chunks` cost less to read than whole chunks, see
    /// [`request_cost_bytes`](crate::Config::request_cost_bytes), the scan is sparse: other pages of its chunks may be
    /// missing from the pool [CS04 §4.2].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PageId>>,
    /// What its query computes of each chunk, if it takes results from other queries that compute the same: it is then
    /// handed chunks last on which a scan of the same computation works, since their results may make them unneeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computation: Option<ComputationId>,
}

/// A query at another server for which a scan reads a few pages. The scan ranks as the query would if it ran here. It needs
/// no processor and never waits for space: see [`NoSpace`](crate::Action::NoSpace).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RemoteQuery {
    /// The time that it has waited, in nanoseconds.
    pub waited_ns: u64,
    /// Chunks that it still needs, not counting the scan's own.
    pub chunks_left: u64,
    /// Chunks that it reads in all, not counting the scan's own.
    pub chunks_in_all: u64,
    /// Bytes of those chunks, each taken as wide as the widest.
    pub bytes_in_all: u64,
}

impl ScanSpec {
    /// The chunks, one by one.
    pub fn chunk_indexes(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        indexes(&self.chunks)
    }
}

/// The chunks of these ranges, one by one.
pub(crate) fn indexes(chunks: &[Range<ChunkIndex>]) -> impl Iterator<Item = ChunkIndex> + '_ {
    chunks.iter().flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex))
}

/// The progress of a scan, for EXPLAIN and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanCounts {
    /// Chunks that it needed when it started, and those that were added.
    pub chunks_needed: u64,
    /// Chunks that were pruned while it ran.
    pub chunks_pruned_dynamic: u64,
    /// Chunks that it was handed, without those that its workers returned.
    pub chunks_delivered: u64,
    /// Chunks handed out at once, since they were in the pool when a worker asked. This and the bytes are counted when
    /// the worker has released the pages, since until then it may return the chunk.
    pub chunks_found: u64,
    /// Bytes of the pages it was handed that were read for it.
    pub bytes_read: u64,
    /// Bytes of the pages it was handed that were read for another scan, or for another chunk of its own.
    pub bytes_reused: u64,
}
