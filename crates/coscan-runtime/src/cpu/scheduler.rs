//! Tracks which scans are at work on a chunk, so that others yield to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coscan_core::{PriorityClass, Time, WorkerIndex};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::cpu::activity::WorkerActivity;
use crate::sync::destructor::InDestructor;

/// Tracks which workers have a chunk to work on.
#[derive(Debug)]
pub(crate) struct CpuScheduler {
    /// The origin of times.
    started: Instant,
    runnable: Mutex<RunnableWorkers>,
    /// Notified when a worker that others may yield to has finished its chunk.
    done: Notify,
}

#[derive(Debug, Default)]
struct RunnableWorkers {
    workers: BTreeMap<u64, (Arc<WorkerActivity>, WorkerIndex)>,
    next: u64,
}

impl CpuScheduler {
    /// A scheduler without workers. Times are counted from `started`.
    pub(crate) fn new(started: Instant) -> Self {
        Self { started, runnable: Mutex::default(), done: Notify::new() }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Notes that a worker has a chunk to work on until the result is dropped. It counts while it is polled.
    pub(crate) fn add(
        self: &Arc<Self>,
        activity: Arc<WorkerActivity>,
        worker: WorkerIndex,
    ) -> Runnable {
        let mut runnable = self.lock();
        let id = runnable.next;
        runnable.next += 1;
        runnable.workers.insert(id, (activity, worker));
        Runnable { scheduler: Arc::clone(self), id }
    }

    /// Waits until no scan of a shorter class is at work, at most for `pause`. Timers are on `runtime`.
    pub(crate) async fn give_way(
        &self,
        priority: PriorityClass,
        pause: Duration,
        runtime: &Handle,
    ) {
        let end = Instant::now() + pause;
        loop {
            // This precedes the check, so a worker that finishes in between is noticed.
            let done = self.done.notified();
            let Some(until) = self.shorter_until(priority) else { return };
            if Instant::now() >= end {
                return;
            }
            // By then those workers may no longer be polled, which is not notified.
            let until = self.started.checked_add(Duration::from_nanos(until.0)).unwrap_or(end);
            let next = {
                let _runtime = runtime.enter();
                timeout_at(end.min(until), done)
            };
            // In either case the loop checks again.
            let _ = next.await;
        }
    }

    /// The time until which scans of shorter classes are at work, as far as is known; `None` if none is.
    pub(crate) fn shorter_until(&self, priority: PriorityClass) -> Option<Time> {
        let now = self.now();
        let runnable = self.lock();
        let shorter =
            runnable.workers.values().filter(|(activity, _)| activity.priority() < priority);
        shorter.filter_map(|(activity, worker)| activity.active_until(*worker, now)).max()
    }

    /// Whether all other scans at work have more work left.
    pub(crate) fn has_least_left(&self, activity: &WorkerActivity) -> bool {
        let (now, left) = (self.now(), activity.work_left_ns());
        let runnable = self.lock();
        runnable.workers.values().all(|(other, worker)| {
            std::ptr::eq(other.as_ref(), activity)
                || other.work_left_ns() > left
                || other.active_until(*worker, now).is_none()
        })
    }

    fn lock(&self) -> MutexGuard<'_, RunnableWorkers> {
        self.runnable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker has a chunk to work on, until this is dropped.
#[derive(Debug)]
pub(crate) struct Runnable {
    scheduler: Arc<CpuScheduler>,
    id: u64,
}

impl Drop for Runnable {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        let removed = self.scheduler.lock().workers.remove(&self.id);
        if removed.is_some_and(|(activity, _)| activity.priority() < PriorityClass::Long) {
            self.scheduler.done.notify_waiters();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cpu::activity::IDLE_AFTER;

    const WORKER: WorkerIndex = WorkerIndex(0);
    const PAUSE: Duration = Duration::from_millis(100);

    pub(crate) fn scheduler() -> Arc<CpuScheduler> {
        Arc::new(CpuScheduler::new(Instant::now()))
    }

    /// A worker of a scan of this class that is being polled.
    pub(crate) fn working(
        scheduler: &Arc<CpuScheduler>,
        priority: PriorityClass,
    ) -> (Arc<WorkerActivity>, Runnable) {
        let activity = Arc::new(WorkerActivity::new(1));
        activity.set_priority(priority);
        activity.poll_begins(WORKER);
        (Arc::clone(&activity), scheduler.add(activity, WORKER))
    }

    pub(crate) async fn give_way(scheduler: &CpuScheduler, pause: Duration) -> Duration {
        let started = Instant::now();
        scheduler.give_way(PriorityClass::Long, pause, &Handle::current()).await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn it_pauses_for_no_scan_that_is_not_polled() {
        let scheduler = scheduler();
        let (activity, _short) = working(&scheduler, PriorityClass::Short);
        assert_eq!(give_way(&scheduler, PAUSE).await, PAUSE, "it is polled all the time");
        activity.poll_ends(WORKER, scheduler.now());
        assert_eq!(give_way(&scheduler, PAUSE).await, IDLE_AFTER);
        assert_eq!(give_way(&scheduler, PAUSE).await, Duration::ZERO);
        activity.poll_begins(WORKER);
        assert_eq!(give_way(&scheduler, PAUSE).await, PAUSE, "it is polled again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_scan_does_not_give_way_to_its_own_workers_whatever_its_class_becomes() {
        let scheduler = scheduler();
        let (activity, _one) = working(&scheduler, PriorityClass::Long);
        let _other = scheduler.add(Arc::clone(&activity), WORKER);
        for priority in [PriorityClass::Short, PriorityClass::Tiny, PriorityClass::Long] {
            activity.set_priority(priority);
            assert_eq!(scheduler.shorter_until(activity.priority()), None, "{priority:?}");
        }
    }
}
