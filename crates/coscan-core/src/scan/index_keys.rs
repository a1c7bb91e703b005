//! What the running scans are indexed by, so that decisions find those that they look for.

use super::{Scan, Turn};
use crate::ids::Time;

/// What a scan is indexed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct IndexKeys {
    pub(crate) size: u64,
    pub(crate) chunks_in_all: u64,
    pub(crate) needed: usize,
    /// Of the worker that waits longest.
    pub(crate) waiting: Option<(Turn, Time)>,
    pub(crate) is_deliverable: bool,
    pub(crate) is_starved: bool,
    pub(crate) is_almost_starved: bool,
    pub(crate) wants_load: bool,
    pub(crate) most_decoded: usize,
    pub(crate) busy_workers: usize,
    pub(crate) active_workers: usize,
    /// Since when the one of those is at work on its chunk that has been for longest.
    pub(crate) active_since: Option<Time>,
    /// 0 if unknown.
    pub(crate) chunk_ns: u64,
    pub(crate) row_ps: Option<u64>,
}

impl IndexKeys {
    pub(crate) fn of(scan: &Scan) -> Self {
        Self {
            size: scan.size(),
            chunks_in_all: scan.chunks_in_all(),
            needed: scan.needed.len(),
            waiting: scan.longest_waiting().map(|(turn, since, _)| (turn, since)),
            is_deliverable: scan.is_deliverable(),
            is_starved: scan.is_starved(),
            is_almost_starved: scan.is_almost_starved(),
            wants_load: scan.wants_load() && scan.loadable().next().is_some(),
            most_decoded: scan.most_decoded(),
            busy_workers: scan.busy_workers(),
            active_workers: scan.active_since().count(),
            active_since: scan.active_since().min(),
            chunk_ns: scan.chunk_ns,
            row_ps: scan.rate.smoothed(),
        }
    }

    pub(crate) fn turn(self) -> Option<Turn> {
        self.waiting.map(|(turn, _)| turn)
    }

    pub(crate) fn ready(self) -> Option<Turn> {
        self.turn().filter(|_| self.is_deliverable)
    }

    pub(crate) fn starving_since(self) -> Option<Time> {
        self.waiting.filter(|_| !self.is_deliverable).map(|(_, since)| since)
    }
}
