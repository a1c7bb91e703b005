//! Scans yield processors, to shorter scans above all.
//!
//! An async runtime does not preempt tasks: a task that is ready waits until those before it yield, and a query whose
//! batches are all there may run for a long time. So the workers of scans yield every millisecond, and pause while a
//! shorter scan works on a chunk, for at most half of their time. A scan that its query does not poll works on none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coscan_core::{PriorityClass, Time, WorkerIndex};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::worker_activity::WorkerActivity;

/// The time slice: how long a worker runs before it yields.
pub(crate) const TIME_SLICE: Duration = Duration::from_millis(1);

/// The longest pause between two time slices.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Tracks which workers have a chunk to work on.
#[derive(Debug)]
pub(crate) struct CpuScheduler {
    /// The origin of times.
    started: Instant,
    runnable: Mutex<RunnableWorkers>,
    /// Notified when a worker that others may give way to has finished its chunk.
    done: Notify,
}

#[derive(Debug, Default)]
struct RunnableWorkers {
    workers: BTreeMap<u64, (Arc<WorkerActivity>, WorkerIndex)>,
    next: u64,
}

impl CpuScheduler {
    /// Without workers. Times are counted from `started`.
    pub(crate) fn new(started: Instant) -> Self {
        Self { started, runnable: Mutex::default(), done: Notify::new() }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// A worker has a chunk to work on until the result is dropped. It counts while it is polled.
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
            // Before the check: a worker that finishes in between is noticed.
            let done = self.done.notified();
            let Some(until) = self.shorter_until(priority) else { return };
            if Instant::now() >= end {
                return;
            }
            // By then they may no longer be polled, which is not notified.
            let until = self.started.checked_add(Duration::from_nanos(until.0)).unwrap_or(end);
            let next = {
                let _runtime = runtime.enter();
                timeout_at(end.min(until), done)
            };
            // Either way it checks again.
            let _ = next.await;
        }
    }

    /// Until when scans of shorter classes are at work, as far as is known; `None` if none is.
    fn shorter_until(&self, priority: PriorityClass) -> Option<Time> {
        let now = self.now();
        let runnable = self.lock();
        let shorter =
            runnable.workers.values().filter(|(activity, _)| activity.priority() < priority);
        shorter.filter_map(|(activity, worker)| activity.active_until(*worker, now)).max()
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
        let removed = self.scheduler.lock().workers.remove(&self.id);
        if removed.is_some_and(|(activity, _)| activity.priority() < PriorityClass::Long) {
            self.scheduler.done.notify_waiters();
        }
    }
}

/// Decides when a worker yields.
#[derive(Debug)]
pub(crate) struct YieldPolicy {
    /// The start of its time slice.
    since: Instant,
    /// The time of its last decision.
    asked: Instant,
    /// How much longer it has worked than paused.
    ahead: Duration,
}

/// The decision of a worker before its next batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum YieldDecision {
    /// It goes on.
    Continue,
    /// It lets other tasks run.
    Yield,
    /// It pauses while shorter scans work, at most for this time.
    GiveWay(Duration),
}

impl YieldPolicy {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { since: now, asked: now, ahead: Duration::ZERO }
    }

    /// The next decision of the worker of a scan of this class.
    pub(crate) fn next(
        &mut self,
        scheduler: &CpuScheduler,
        priority: PriorityClass,
    ) -> YieldDecision {
        let now = Instant::now();
        self.ahead += now - self.asked;
        self.asked = now;
        if now - self.since <= TIME_SLICE {
            return YieldDecision::Continue;
        }
        self.since = now;
        if self.ahead > TIME_SLICE && scheduler.shorter_until(priority).is_some() {
            return YieldDecision::GiveWay(self.ahead.min(PAUSE_MAX));
        }
        YieldDecision::Yield
    }

    /// It goes on after it has waited.
    pub(crate) fn resume(&mut self, has_paused: bool) {
        let now = Instant::now();
        if has_paused {
            self.ahead = self.ahead.saturating_sub(now - self.asked);
        }
        (self.since, self.asked) = (now, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker_activity::IDLE_AFTER;

    const WORKER: WorkerIndex = WorkerIndex(0);

    fn scheduler() -> Arc<CpuScheduler> {
        Arc::new(CpuScheduler::new(Instant::now()))
    }

    /// A worker of a scan of this class that is being polled.
    fn working(
        scheduler: &Arc<CpuScheduler>,
        priority: PriorityClass,
    ) -> (Arc<WorkerActivity>, Runnable) {
        let activity = Arc::new(WorkerActivity::new(1));
        activity.set_priority(priority);
        activity.poll_begins(WORKER);
        (Arc::clone(&activity), scheduler.add(activity, WORKER))
    }

    async fn give_way(scheduler: &CpuScheduler, pause: Duration) -> Duration {
        let started = Instant::now();
        scheduler.give_way(PriorityClass::Long, pause, &Handle::current()).await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_scan_pauses_while_a_short_one_works() {
        let scheduler = scheduler();
        let (mut yield_policy, mut of_short) = (YieldPolicy::new(), YieldPolicy::new());
        tokio::time::advance(TIME_SLICE * 2).await;
        assert_eq!(yield_policy.next(&scheduler, PriorityClass::Long), YieldDecision::Yield);
        let (_, short) = working(&scheduler, PriorityClass::Short);
        assert_eq!(
            of_short.next(&scheduler, PriorityClass::Short),
            YieldDecision::Yield,
            "not to its like"
        );
        let (_, tiny) = working(&scheduler, PriorityClass::Tiny);
        tokio::time::advance(TIME_SLICE * 2).await;
        assert!(matches!(
            of_short.next(&scheduler, PriorityClass::Short),
            YieldDecision::GiveWay(_)
        ));
        drop(tiny);
        let YieldDecision::GiveWay(pause) = yield_policy.next(&scheduler, PriorityClass::Long)
        else {
            panic!("it goes on")
        };
        assert_eq!(pause, TIME_SLICE * 4);
        let ends = async {
            tokio::time::sleep(TIME_SLICE * 3).await;
            drop(short);
        };
        assert_eq!(tokio::join!(give_way(&scheduler, pause), ends).0, TIME_SLICE * 3);
        yield_policy.resume(true);
        assert_eq!(yield_policy.next(&scheduler, PriorityClass::Long), YieldDecision::Continue);
    }

    #[tokio::test(start_paused = true)]
    async fn it_pauses_for_half_of_its_time_at_most() {
        let scheduler = scheduler();
        let _short = working(&scheduler, PriorityClass::Short);
        let mut yield_policy = YieldPolicy::new();
        let (mut worked, mut stood) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..1_000 {
            tokio::time::advance(TIME_SLICE * 8).await;
            worked += TIME_SLICE * 8;
            if let YieldDecision::GiveWay(pause) =
                yield_policy.next(&scheduler, PriorityClass::Long)
            {
                stood += give_way(&scheduler, pause).await;
                yield_policy.resume(true);
            }
        }
        // Timers have a resolution of a millisecond.
        assert!(stood > worked / 2 && stood <= worked * 5 / 4, "{stood:?} of {worked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_pauses_for_no_scan_that_is_not_polled() {
        let scheduler = scheduler();
        let (activity, _short) = working(&scheduler, PriorityClass::Short);
        assert_eq!(give_way(&scheduler, PAUSE_MAX).await, PAUSE_MAX, "it is polled all the time");
        activity.poll_ends(WORKER, scheduler.now());
        assert_eq!(give_way(&scheduler, PAUSE_MAX).await, IDLE_AFTER);
        assert_eq!(give_way(&scheduler, PAUSE_MAX).await, Duration::ZERO);
        activity.poll_begins(WORKER);
        assert_eq!(give_way(&scheduler, PAUSE_MAX).await, PAUSE_MAX, "it is polled again");
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

    #[tokio::test(start_paused = true)]
    async fn every_worker_yields_now_and_then() {
        let scheduler = scheduler();
        let mut yield_policy = YieldPolicy::new();
        let mut yields = 0;
        for _ in 0..100 {
            tokio::time::advance(TIME_SLICE / 4).await;
            yields += usize::from(
                yield_policy.next(&scheduler, PriorityClass::Tiny) == YieldDecision::Yield,
            );
        }
        assert_eq!(yields, 20);
    }
}
