//! When the workers of a scan were last polled: a query that does not go on shows it by that.

use std::sync::atomic::{AtomicU64, Ordering};

use coscan_core::{Index, Time, WorkerIndex};

/// The time of the latest poll of each worker.
#[derive(Debug)]
pub(crate) struct Polls {
    latest_ns: Box<[AtomicU64]>,
}

impl Polls {
    /// For this many workers, none of them polled yet.
    pub(crate) fn new(workers: usize) -> Self {
        Self { latest_ns: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A worker is polled.
    pub(crate) fn note(&self, worker: WorkerIndex, now: Time) {
        self.latest_ns[worker.as_usize()].store(now.0, Ordering::Relaxed);
    }

    /// Workers that were not polled since then.
    pub(crate) fn before(&self, time: Time) -> impl Iterator<Item = WorkerIndex> + '_ {
        let polled = self.latest_ns.iter().map(|latest_ns| Time(latest_ns.load(Ordering::Relaxed)));
        let before = polled.enumerate().filter(move |(_, latest)| *latest < time);
        before.map(|(worker, _)| WorkerIndex::from_usize(worker))
    }
}
