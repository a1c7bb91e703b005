//! Whether the workers of a scan are being polled: a query that does not go on shows it by that.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use coscan_core::{Index, PriorityClass, Time, WorkerIndex};

/// A worker that was not polled for this long is not at work: a query at work takes a batch every few milliseconds.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// What is known of the workers of a scan while they work, and how long the scan is: one place for all who ask.
#[derive(Debug)]
pub(crate) struct Polls {
    priority: AtomicU8,
    workers: Box<[WorkerPolls]>,
}

#[derive(Debug, Default)]
struct WorkerPolls {
    /// Until when it counts as at work if it is not polled again; the end of time while it is being polled.
    until_ns: AtomicU64,
    /// How long it stands still by itself, which is no pause of its query.
    stands_still_ns: AtomicU64,
    /// Core counts it among the workers at work.
    counts: AtomicBool,
}

impl Polls {
    /// For this many workers, none of them polled yet.
    pub(crate) fn new(workers: usize) -> Self {
        let workers = std::iter::repeat_with(WorkerPolls::default).take(workers).collect();
        Self { priority: AtomicU8::new(PriorityClass::Long as u8), workers }
    }

    /// How long the scan was beside others when it started or was last handed a chunk.
    pub(crate) fn priority(&self) -> PriorityClass {
        let priority = self.priority.load(Ordering::Relaxed);
        let all = [PriorityClass::Tiny, PriorityClass::Short];
        all.into_iter().find(|&it| it as u8 == priority).unwrap_or(PriorityClass::Long)
    }

    pub(crate) fn set_priority(&self, priority: PriorityClass) {
        self.priority.store(priority as u8, Ordering::Relaxed);
    }

    /// A worker has asked for a chunk: it is not at work until it is handed one.
    pub(crate) fn asked(&self, worker: WorkerIndex) {
        self.of(worker).counts.store(false, Ordering::Relaxed);
    }

    /// A worker was handed a chunk.
    pub(crate) fn handed(&self, worker: WorkerIndex, now: Time) {
        let worker = self.of(worker);
        worker.counts.store(true, Ordering::Relaxed);
        // It may be at the poll in which it asked.
        worker.until_ns.fetch_max(after(now, PAUSE), Ordering::Relaxed);
    }

    /// A worker is being polled from now on.
    pub(crate) fn begin(&self, worker: WorkerIndex) {
        self.of(worker).until_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// A worker is no longer being polled.
    pub(crate) fn end(&self, worker: WorkerIndex, now: Time) {
        let worker = self.of(worker);
        let stands_still = Duration::from_nanos(worker.stands_still_ns.load(Ordering::Relaxed));
        worker.until_ns.store(after(now, PAUSE + stands_still), Ordering::Relaxed);
    }

    /// For how long a worker will stand still by itself.
    pub(crate) fn stand_still(&self, worker: WorkerIndex, pause: Duration) {
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.of(worker).stands_still_ns.store(pause_ns, Ordering::Relaxed);
    }

    /// Until when a worker counts as at work; no time if it does not now.
    pub(crate) fn at_work_until(&self, worker: WorkerIndex, now: Time) -> Option<Time> {
        let until = Time(self.of(worker).until_ns.load(Ordering::Relaxed));
        (until > now).then_some(until)
    }

    /// Workers that core counts as at work and that are not. Each is named once for a chunk.
    pub(crate) fn newly_paused(&self, now: Time) -> impl Iterator<Item = WorkerIndex> + '_ {
        let workers = (0..self.workers.len()).map(WorkerIndex::from_usize);
        workers.filter(move |&worker| {
            self.at_work_until(worker, now).is_none()
                && self.of(worker).counts.swap(false, Ordering::Relaxed)
        })
    }

    fn of(&self, worker: WorkerIndex) -> &WorkerPolls {
        &self.workers[worker.as_usize()]
    }
}

fn after(now: Time, pause: Duration) -> u64 {
    now.0.saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: WorkerIndex = WorkerIndex(0);

    fn paused(polls: &Polls, ms: u64) -> usize {
        polls.newly_paused(Time(ms * 1_000_000)).count()
    }

    #[test]
    fn a_worker_is_paused_once_a_chunk_when_it_is_not_polled_and_not_while_it_is() {
        let polls = Polls::new(1);
        assert_eq!(paused(&polls, 1_000), 0, "it has no chunk");
        polls.handed(WORKER, Time(0));
        polls.begin(WORKER);
        assert_eq!(paused(&polls, 1_000), 0, "a long poll is no pause");
        polls.end(WORKER, Time(1_000_000_000));
        assert_eq!(paused(&polls, 1_019), 0);
        assert_eq!((paused(&polls, 1_020), paused(&polls, 1_040)), (1, 0));
        polls.handed(WORKER, Time(1_050_000_000));
        assert_eq!(paused(&polls, 1_069), 0, "its query has time to wake up");
        assert_eq!(paused(&polls, 1_070), 1);
        polls.handed(WORKER, Time(2_000_000_000));
        polls.asked(WORKER);
        assert_eq!(paused(&polls, 3_000), 0, "it waits for a chunk");
    }

    #[test]
    fn a_worker_that_stands_still_by_itself_is_not_paused_for_so_long() {
        let polls = Polls::new(1);
        polls.handed(WORKER, Time(0));
        polls.begin(WORKER);
        polls.stand_still(WORKER, Duration::from_millis(100));
        polls.end(WORKER, Time(0));
        assert_eq!((paused(&polls, 119), paused(&polls, 120)), (0, 1));
    }
}
