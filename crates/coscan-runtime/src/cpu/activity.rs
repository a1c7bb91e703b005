//! The activity of the workers of a scan: a query that pauses does not poll its workers.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use coscan_core::{Index, PriorityClass, Time, WorkerIndex};

/// The time without a poll after which a worker is not at work. A query at work takes a batch every few milliseconds.
pub(crate) const IDLE_AFTER: Duration = Duration::from_millis(20);

/// The activity of the workers of a scan, and its priority class.
#[derive(Debug)]
pub(crate) struct WorkerActivity {
    priority: AtomicU8,
    /// Nanoseconds of work that the scan has left.
    work_left_ns: AtomicU64,
    workers: Box<[Activity]>,
}

#[derive(Debug, Default)]
struct Activity {
    /// The time until which it counts as at work unless it is polled again; `u64::MAX` while it is being polled.
    until_ns: AtomicU64,
    /// The length of a pause of its own, which is no pause of its query.
    own_pause_ns: AtomicU64,
    /// The time since which it has waited for memory to decode; 0 while it does not.
    memory_since_ns: AtomicU64,
}

impl WorkerActivity {
    /// The activity of this number of workers, none of them polled yet.
    pub(crate) fn new(workers: usize) -> Self {
        let workers = std::iter::repeat_with(Activity::default).take(workers).collect();
        let priority = AtomicU8::new(PriorityClass::Long as u8);
        Self { priority, work_left_ns: AtomicU64::new(u64::MAX), workers }
    }

    /// The class of the scan when it started or was last handed a chunk.
    pub(crate) fn priority(&self) -> PriorityClass {
        let priority = self.priority.load(Ordering::Relaxed);
        let all = [PriorityClass::Tiny, PriorityClass::Short];
        all.into_iter().find(|&class| class as u8 == priority).unwrap_or(PriorityClass::Long)
    }

    pub(crate) fn set_priority(&self, priority: PriorityClass) {
        self.priority.store(priority as u8, Ordering::Relaxed);
    }

    /// The approximate nanoseconds of work that the scan had left when it was last handed a chunk; `u64::MAX` before.
    pub(crate) fn work_left_ns(&self) -> u64 {
        self.work_left_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn set_work_left_ns(&self, work_left_ns: u64) {
        self.work_left_ns.store(work_left_ns, Ordering::Relaxed);
    }

    /// Notes that a worker was handed a chunk.
    pub(crate) fn handed(&self, worker: WorkerIndex, now: Time) {
        // The poll in which it asked may not have ended: `fetch_max` keeps that.
        self.of(worker).until_ns.fetch_max(after(now, IDLE_AFTER), Ordering::Relaxed);
    }

    /// Notes that a worker is being polled from now on.
    pub(crate) fn poll_begins(&self, worker: WorkerIndex) {
        self.of(worker).until_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// Notes that a worker is no longer being polled.
    pub(crate) fn poll_ends(&self, worker: WorkerIndex, now: Time) {
        let worker = self.of(worker);
        let own_pause = Duration::from_nanos(worker.own_pause_ns.load(Ordering::Relaxed));
        worker.until_ns.store(after(now, IDLE_AFTER + own_pause), Ordering::Relaxed);
    }

    /// Notes that a worker is about to pause by itself for this long.
    pub(crate) fn pause_for(&self, worker: WorkerIndex, pause: Duration) {
        let recheck_interval_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.of(worker).own_pause_ns.store(recheck_interval_ns, Ordering::Relaxed);
    }

    /// Notes that a worker waits for memory to decode, until the result is dropped.
    pub(crate) fn in_memory_queue(&self, worker: WorkerIndex, now: Time) -> InMemoryQueue<'_> {
        let since = &self.of(worker).memory_since_ns;
        since.store(now.0.max(1), Ordering::Relaxed);
        InMemoryQueue(since)
    }

    /// The time since which a worker has waited for memory to decode, if one does.
    pub(crate) fn memory_since(&self) -> Option<Time> {
        let since =
            self.workers.iter().map(|worker| worker.memory_since_ns.load(Ordering::Relaxed));
        since.filter(|&since| since > 0).min().map(Time)
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The time since which no worker has been at work; `None` if one is.
    pub(crate) fn idle_since(&self, now: Time) -> Option<Time> {
        let until = self.workers.iter().map(|worker| worker.until_ns.load(Ordering::Relaxed)).max();
        until.filter(|&until| until <= now.0).map(Time)
    }

    /// The time until which a worker counts as at work; `None` if it does not now.
    pub(crate) fn active_until(&self, worker: WorkerIndex, now: Time) -> Option<Time> {
        let until = Time(self.of(worker).until_ns.load(Ordering::Relaxed));
        (until > now).then_some(until)
    }

    /// The time since which a worker has not been at work; `None` if it is now.
    pub(crate) fn worker_idle_since(&self, worker: WorkerIndex, now: Time) -> Option<Time> {
        let until = Time(self.of(worker).until_ns.load(Ordering::Relaxed));
        (until <= now).then_some(until)
    }

    fn of(&self, worker: WorkerIndex) -> &Activity {
        &self.workers[worker.as_usize()]
    }
}

/// The mark of a worker that waits for memory.
pub(crate) struct InMemoryQueue<'a>(&'a AtomicU64);

impl Drop for InMemoryQueue<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

fn after(now: Time, pause: Duration) -> u64 {
    now.0.saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: WorkerIndex = WorkerIndex(0);

    fn is_active(activity: &WorkerActivity, ms: u64) -> bool {
        activity.active_until(WORKER, Time(ms * 1_000_000)).is_some()
    }

    #[test]
    fn a_worker_is_active_while_it_is_polled_and_a_little_longer() {
        let activity = WorkerActivity::new(1);
        activity.handed(WORKER, Time(0));
        activity.poll_begins(WORKER);
        assert!(is_active(&activity, 1_000), "a long poll is no pause");
        activity.poll_ends(WORKER, Time(1_000_000_000));
        assert!(is_active(&activity, 1_019) && !is_active(&activity, 1_020));
        activity.handed(WORKER, Time(1_050_000_000));
        assert!(is_active(&activity, 1_069), "its query has time to wake up");
        assert!(!is_active(&activity, 1_070));
    }

    #[test]
    fn a_worker_that_pauses_by_itself_does_not_count_as_paused_for_so_long() {
        let activity = WorkerActivity::new(1);
        activity.handed(WORKER, Time(0));
        activity.poll_begins(WORKER);
        activity.pause_for(WORKER, Duration::from_millis(100));
        activity.poll_ends(WORKER, Time(0));
        assert!(is_active(&activity, 119) && !is_active(&activity, 120));
    }
}
