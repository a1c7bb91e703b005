//! Counters of scans and of the manager, for EXPLAIN and reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coscan_core::ScanCounts;

/// Counters of one scan so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanMetrics {
    /// Chunks and bytes, as the scheduler counts them.
    pub chunks: ScanCounts,
    /// Columns of chunks that it decoded.
    pub slices_decoded: u64,
    /// Columns of chunks that were decoded already, for other scans or earlier ones.
    pub slices_reused: u64,
    /// Bytes of pages that came from other servers, of all loads made for it.
    pub bytes_from_peers: u64,
    /// Total time for which its workers waited for chunks.
    pub wait: Duration,
    /// Total time for which its workers decoded.
    pub decode: Duration,
    /// Total time of the loads made for it.
    pub read: Duration,
}

impl ScanMetrics {
    /// The sum of both counters.
    pub(crate) fn plus(self, other: &Self) -> Self {
        let (a, b) = (&self.chunks, &other.chunks);
        Self {
            chunks: ScanCounts {
                chunks_needed: a.chunks_needed + b.chunks_needed,
                chunks_pruned_dynamic: a.chunks_pruned_dynamic + b.chunks_pruned_dynamic,
                chunks_delivered: a.chunks_delivered + b.chunks_delivered,
                chunks_found: a.chunks_found + b.chunks_found,
                bytes_read: a.bytes_read + b.bytes_read,
                bytes_reused: a.bytes_reused + b.bytes_reused,
            },
            slices_decoded: self.slices_decoded + other.slices_decoded,
            slices_reused: self.slices_reused + other.slices_reused,
            bytes_from_peers: self.bytes_from_peers + other.bytes_from_peers,
            wait: self.wait + other.wait,
            decode: self.decode + other.decode,
            read: self.read + other.read,
        }
    }
}

/// Counts of columns of chunks: decoded, or found decoded.
#[derive(Debug, Default)]
pub(crate) struct SliceCounters {
    pub(crate) decoded: AtomicU64,
    pub(crate) reused: AtomicU64,
}

/// Counters of a scan that its workers and loads add to.
#[derive(Debug, Default)]
pub(crate) struct ScanCounters {
    slices: SliceCounters,
    /// The counts of all scans.
    slices_of_all: Arc<SliceCounters>,
    pub(crate) bytes_from_peers: AtomicU64,
    pub(crate) wait_ns: AtomicU64,
    pub(crate) decode_ns: AtomicU64,
    pub(crate) read_ns: AtomicU64,
}

impl ScanCounters {
    pub(crate) fn new(slices_of_all: Arc<SliceCounters>) -> Self {
        Self { slices_of_all, ..Self::default() }
    }

    pub(crate) fn count_decoded(&self) {
        self.slices.decoded.fetch_add(1, Ordering::Relaxed);
        self.slices_of_all.decoded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_reused(&self) {
        self.slices.reused.fetch_add(1, Ordering::Relaxed);
        self.slices_of_all.reused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_from_peer(&self, page: &[u8]) {
        self.bytes_from_peers.fetch_add(page.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn with_chunks(&self, chunks: ScanCounts) -> ScanMetrics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |counter: &AtomicU64| Duration::from_nanos(count(counter));
        ScanMetrics {
            chunks,
            slices_decoded: count(&self.slices.decoded),
            slices_reused: count(&self.slices.reused),
            bytes_from_peers: count(&self.bytes_from_peers),
            wait: time(&self.wait_ns),
            decode: time(&self.decode_ns),
            read: time(&self.read_ns),
        }
    }
}

/// Adds a time to a counter of nanoseconds.
pub(crate) fn add_time(counter: &AtomicU64, time: Duration) {
    counter.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// A report on the manager at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerReport {
    /// The time since it was made, by which events are dated.
    pub age: Duration,
    /// Running scans.
    pub scans: usize,
    /// Loads in flight.
    pub loads_in_flight: usize,
    /// Chunks that workers hold as stored pages.
    pub chunks_in_use: usize,
    /// Loads that were started so far.
    pub loads_started: u64,
    /// Chunks that were handed to workers so far.
    pub chunks_delivered: u64,
    /// Bytes of pages that were read from stores so far.
    pub bytes_read: u64,
    /// Bytes of pages that chunks handed to workers had so far: the bytes that scans that share nothing would have
    /// read.
    pub bytes_delivered: u64,
    /// Decisions of the scheduler so far: loads, evictions and answers to workers.
    pub decisions: u64,
    /// Time under the scheduler's lock so far: for those decisions, for the commands and events that led to them, and
    /// for carrying them out.
    pub decision_time: Duration,
    /// Columns of chunks that scans decoded so far.
    pub slices_decoded: u64,
    /// Columns of chunks that scans took decoded from others so far.
    pub slices_reused: u64,
    /// Bytes of stored pages, those being read among them.
    pub pool_held_bytes: u64,
    /// The current limit of the pool in bytes.
    pub pool_limit_bytes: u64,
    /// Bytes of decoded columns: kept, being made, or still referenced by a query.
    pub decoded_bytes: u64,
    /// Of these, bytes of columns that no scan needs. They stay for later scans while memory is free.
    pub decoded_idle_bytes: u64,
    /// Bytes of the operators that draw on the same budget.
    pub operator_bytes: u64,
    /// Bytes of metadata: footers, page indexes and Bloom filters of open files, and the metadata of registered tables.
    pub metadata_bytes: u64,
    /// The most bytes of all kinds held at once so far.
    pub held_bytes_max: u64,
    /// The memory budget in bytes.
    pub memory_bytes: u64,
}

impl ManagerReport {
    /// Bytes that were not read because scans shared those of others, so far.
    #[must_use]
    pub fn bytes_saved(&self) -> u64 {
        self.bytes_delivered.saturating_sub(self.bytes_read)
    }
}
