//! What a query wants of a table, and what it got.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::ids::{ChunkIndex, GroupIndex, PageId, TableId};

/// Whether a scan takes its chunks as they come or first rows first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Any order: the policy decides.
    #[default]
    Any,
    /// Lowest chunk index first (I6).
    InOrder,
}

/// How long a scan is beside others. Who is longer gives way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PriorityClass {
    /// Picked pages, or a short scan of a few chunks.
    Tiny,
    /// A small part of what the longest one needed when it started.
    Short,
    /// All others.
    Long,
}

/// Which scans are short beside others. By default none is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorityBounds {
    /// Below this [size](crate::Scan::size), in bytes, a scan is short.
    pub short_below: u64,
    /// A short scan of [so many chunks](crate::Scan::chunks_in_all) at most is tiny.
    pub tiny_chunks_max: u64,
}

impl PriorityBounds {
    /// The length of a scan of so many bytes and chunks.
    #[must_use]
    pub fn class_of(self, size: u64, chunks: u64) -> PriorityClass {
        if size >= self.short_below {
            PriorityClass::Long
        } else if chunks > self.tiny_chunks_max {
            PriorityClass::Short
        } else {
            PriorityClass::Tiny
        }
    }
}

/// What a query wants to read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScanSpec {
    /// The table.
    pub table: TableId,
    /// The column groups; none if only the number of rows matters.
    pub groups: Vec<GroupIndex>,
    /// The chunks, as runs of neighbours.
    pub chunks: Vec<Range<ChunkIndex>>,
    /// Whether the order of chunks matters.
    pub order: Order,
    /// How many workers share the scan [CS11 §8.2.2]; at least one.
    pub workers: usize,
    /// How much it counts beside others, at least 1: policies that schedule serve a scan of weight 2 as if it had half
    /// the work left and had waited twice as long.
    pub weight: u32,
    /// Of an index selection: the pages, in any order, that hold the rows that it is after; `None` if any page of its
    /// chunks may. If to read just those costs less than whole chunks, see
    /// [`request_bytes`](crate::Config::request_bytes), a chunk that it is handed has no others for certain [CS04 §4.2].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PageId>>,
}

impl ScanSpec {
    /// Its chunks, one by one.
    pub fn chunk_indexes(&self) -> impl Iterator<Item = ChunkIndex> + '_ {
        indexes(&self.chunks)
    }
}

/// Chunks one by one.
pub(crate) fn indexes(chunks: &[Range<ChunkIndex>]) -> impl Iterator<Item = ChunkIndex> + '_ {
    chunks.iter().flat_map(|run| (run.start.0..run.end.0).map(ChunkIndex))
}

/// What a scan has got so far, for EXPLAIN and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanReport {
    /// Chunks that it needed when it started, and those that were added.
    pub chunks_needed: u64,
    /// Chunks that it gave up while it ran.
    pub chunks_pruned_dynamic: u64,
    /// Chunks that it was handed.
    pub chunks_delivered: u64,
    /// Of those, the ones that were in the pool when a worker asked.
    pub chunks_found: u64,
    /// Bytes of pages it was handed that were read for it.
    pub bytes_read: u64,
    /// Bytes of pages it was handed that were read for another scan, or for it before.
    pub bytes_reused: u64,
}
