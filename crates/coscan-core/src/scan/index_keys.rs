//! The keys under which the running scans are indexed.

use super::{Scan, Ticket};
use crate::ids::Time;
use crate::table::StarvationSets;

/// The keys of a scan in the [`ScanIndex`](crate::state::ScanIndex).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct IndexKeys {
    pub(crate) size: u64,
    pub(crate) chunks_in_all: u64,
    /// Chunks that its query still has to be handed.
    pub(crate) left: usize,
    /// Whether a waiting worker is answered at once: nothing is left, or a chunk is there and no processor is needed.
    pub(crate) answers_at_once: bool,
    /// The ticket of the worker that has waited longest, and since when it waits.
    pub(crate) waiting: Option<(Ticket, Time)>,
    pub(crate) is_deliverable: bool,
    /// Ready chunks that it can do without; `None` if starvation does not matter.
    pub(crate) spare_chunks: Option<usize>,
    pub(crate) needs_load: bool,
    pub(crate) needs_nearby_load: bool,
    pub(crate) decoded_percent: usize,
    pub(crate) busy_workers: usize,
    pub(crate) active_workers: usize,
    /// When the active worker that began its chunk first began it.
    pub(crate) active_since: Option<Time>,
    /// Nanoseconds for a chunk; 0 if unknown.
    pub(crate) chunk_ns: u64,
}

impl IndexKeys {
    pub(crate) fn of(scan: &Scan) -> Self {
        Self {
            size: scan.size(),
            chunks_in_all: scan.chunks_in_all(),
            left: scan.chunks_left(),
            answers_at_once: scan.needed.is_empty() || scan.is_remote() && scan.is_deliverable(),
            waiting: scan.longest_waiting().map(|(ticket, since, _)| (ticket, since)),
            is_deliverable: scan.is_deliverable(),
            spare_chunks: scan.spare_chunks().filter(|&spare| spare <= StarvationSets::SPARE_MAX),
            needs_load: scan.needs_load() && scan.loadable().next().is_some(),
            needs_nearby_load: scan.needs_nearby_load(),
            decoded_percent: scan.decoded_percent(),
            busy_workers: scan.busy_workers(),
            active_workers: scan.active_since().count(),
            active_since: scan.active_since().min(),
            chunk_ns: scan.chunk_ns,
        }
    }

    /// Whether a worker waits or has a chunk.
    pub(crate) fn competes(self) -> bool {
        self.waiting.is_some() || self.busy_workers > 0
    }

    pub(crate) fn ticket(self) -> Option<Ticket> {
        self.waiting.map(|(ticket, _)| ticket)
    }

    pub(crate) fn ready(self) -> Option<Ticket> {
        self.ticket().filter(|_| self.is_deliverable && !self.answers_at_once)
    }

    pub(crate) fn starving_since(self) -> Option<Time> {
        self.waiting.filter(|_| !self.is_deliverable).map(|(_, since)| since)
    }
}
