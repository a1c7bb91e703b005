//! Scans give way to shorter ones at the processors.
//!
//! An async runtime does not take a processor from a task: whoever is ready waits until those before it stop by
//! themselves, and a query over batches that are all there may go on for a long time. So the workers of scans stop every
//! millisecond to let others in, and stand still while a shorter scan works on a chunk, at most half of their time. A scan
//! whose query does not poll it works on none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coscan_core::{PriorityClass, Time, WorkerIndex};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::polls::Polls;

/// How long a worker goes on before it lets others in.
pub(crate) const TURN: Duration = Duration::from_millis(1);

/// The longest that a worker stands still without going on for a turn.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The workers that have a chunk at hand.
#[derive(Debug)]
pub(crate) struct Processors {
    /// What times are counted from.
    started: Instant,
    runnable: Mutex<Runnable>,
    /// Told when a worker that others may give way to has done its chunk.
    done: Notify,
}

#[derive(Debug, Default)]
struct Runnable {
    workers: BTreeMap<u64, (Arc<Polls>, WorkerIndex)>,
    next: u64,
}

impl Processors {
    /// Nobody works. Times are counted from `started`.
    pub(crate) fn new(started: Instant) -> Self {
        Self { started, runnable: Mutex::default(), done: Notify::new() }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// A worker has a chunk at hand until what this returns is dropped. It counts while it is polled.
    pub(crate) fn work(self: &Arc<Self>, polls: Arc<Polls>, worker: WorkerIndex) -> Running {
        let mut runnable = self.lock();
        let id = runnable.next;
        runnable.next += 1;
        runnable.workers.insert(id, (polls, worker));
        Running { processors: Arc::clone(self), id }
    }

    /// Waits until nobody is at work whom a scan of this length gives way to, or this time has passed. Timers are on
    /// `runtime`.
    pub(crate) async fn give_way(
        &self,
        priority: PriorityClass,
        pause: Duration,
        runtime: &Handle,
    ) {
        let end = Instant::now() + pause;
        loop {
            // Before the look: whoever is done meanwhile tells it.
            let done = self.done.notified();
            let Some(until) = self.shorter_until(priority) else { return };
            if Instant::now() >= end {
                return;
            }
            // They may stop being polled, which nobody tells.
            let until = self.started.checked_add(Duration::from_nanos(until.0)).unwrap_or(end);
            let next = {
                let _runtime = runtime.enter();
                timeout_at(end.min(until), done)
            };
            // Either way it looks again.
            let _ = next.await;
        }
    }

    /// Until when shorter scans are at work, as far as is known now; `None` if none is.
    fn shorter_until(&self, priority: PriorityClass) -> Option<Time> {
        let now = self.now();
        let runnable = self.lock();
        let shorter = runnable.workers.values().filter(|(polls, _)| polls.priority() < priority);
        shorter.filter_map(|(polls, worker)| polls.at_work_until(*worker, now)).max()
    }

    fn lock(&self) -> MutexGuard<'_, Runnable> {
        self.runnable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker has a chunk at hand.
#[derive(Debug)]
pub(crate) struct Running {
    processors: Arc<Processors>,
    id: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let removed = self.processors.lock().workers.remove(&self.id);
        if removed.is_some_and(|(polls, _)| polls.priority() < PriorityClass::Long) {
            self.processors.done.notify_waiters();
        }
    }
}

/// The time of a worker.
#[derive(Debug)]
pub(crate) struct YieldPolicy {
    /// When it last went on after it had stopped.
    since: Instant,
    /// When it was last asked.
    asked: Instant,
    /// How much longer it has worked than stood still.
    ahead: Duration,
}

/// What a worker does before its next batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It goes on.
    Go,
    /// It lets others in.
    Yield,
    /// It stands still while shorter scans work, for this time at most.
    GiveWay(Duration),
}

impl YieldPolicy {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { since: now, asked: now, ahead: Duration::ZERO }
    }

    /// What the worker of a scan of this length does next.
    pub(crate) fn next(&mut self, processors: &Processors, priority: PriorityClass) -> Turn {
        let now = Instant::now();
        self.ahead += now - self.asked;
        self.asked = now;
        if now - self.since <= TURN {
            return Turn::Go;
        }
        self.since = now;
        if self.ahead > TURN && processors.shorter_until(priority).is_some() {
            return Turn::GiveWay(self.ahead.min(PAUSE_MAX));
        }
        Turn::Yield
    }

    /// It goes on after it has waited.
    pub(crate) fn resume(&mut self, stood_still: bool) {
        let now = Instant::now();
        if stood_still {
            self.ahead = self.ahead.saturating_sub(now - self.asked);
        }
        (self.since, self.asked) = (now, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::polls::PAUSE;

    const WORKER: WorkerIndex = WorkerIndex(0);

    fn processors() -> Arc<Processors> {
        Arc::new(Processors::new(Instant::now()))
    }

    /// A worker of a scan of this length that is being polled.
    fn working(processors: &Arc<Processors>, priority: PriorityClass) -> (Arc<Polls>, Running) {
        let polls = Arc::new(Polls::new(1));
        polls.set_priority(priority);
        polls.begin(WORKER);
        (Arc::clone(&polls), processors.work(polls, WORKER))
    }

    async fn give_way(processors: &Processors, pause: Duration) -> Duration {
        let started = Instant::now();
        processors.give_way(PriorityClass::Long, pause, &Handle::current()).await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_scan_stands_still_while_a_short_one_works() {
        let processors = processors();
        let (mut yield_policy, mut of_short) = (YieldPolicy::new(), YieldPolicy::new());
        tokio::time::advance(TURN * 2).await;
        assert_eq!(yield_policy.next(&processors, PriorityClass::Long), Turn::Yield);
        let (_, short) = working(&processors, PriorityClass::Short);
        assert_eq!(
            of_short.next(&processors, PriorityClass::Short),
            Turn::Yield,
            "not to its like"
        );
        let (_, tiny) = working(&processors, PriorityClass::Tiny);
        tokio::time::advance(TURN * 2).await;
        assert!(matches!(of_short.next(&processors, PriorityClass::Short), Turn::GiveWay(_)));
        drop(tiny);
        let Turn::GiveWay(pause) = yield_policy.next(&processors, PriorityClass::Long) else {
            panic!("it goes on")
        };
        assert_eq!(pause, TURN * 4);
        let ends = async {
            tokio::time::sleep(TURN * 3).await;
            drop(short);
        };
        assert_eq!(tokio::join!(give_way(&processors, pause), ends).0, TURN * 3);
        yield_policy.resume(true);
        assert_eq!(yield_policy.next(&processors, PriorityClass::Long), Turn::Go);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_for_half_of_its_time_at_most() {
        let processors = processors();
        let _short = working(&processors, PriorityClass::Short);
        let mut yield_policy = YieldPolicy::new();
        let (mut worked, mut stood) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..1_000 {
            tokio::time::advance(TURN * 8).await;
            worked += TURN * 8;
            if let Turn::GiveWay(pause) = yield_policy.next(&processors, PriorityClass::Long) {
                stood += give_way(&processors, pause).await;
                yield_policy.resume(true);
            }
        }
        // Timers have a resolution of a millisecond.
        assert!(stood > worked / 2 && stood <= worked * 5 / 4, "{stood:?} of {worked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_for_no_scan_that_is_not_polled() {
        let processors = processors();
        let (polls, _short) = working(&processors, PriorityClass::Short);
        assert_eq!(give_way(&processors, PAUSE_MAX).await, PAUSE_MAX, "it is polled all the time");
        polls.end(WORKER, processors.now());
        assert_eq!(give_way(&processors, PAUSE_MAX).await, PAUSE);
        assert_eq!(give_way(&processors, PAUSE_MAX).await, Duration::ZERO);
        polls.begin(WORKER);
        assert_eq!(give_way(&processors, PAUSE_MAX).await, PAUSE_MAX, "it is polled again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_scan_does_not_give_way_to_its_own_workers_whatever_its_length_becomes() {
        let processors = processors();
        let (polls, _one) = working(&processors, PriorityClass::Long);
        let _other = processors.work(Arc::clone(&polls), WORKER);
        for priority in [PriorityClass::Short, PriorityClass::Tiny, PriorityClass::Long] {
            polls.set_priority(priority);
            assert_eq!(processors.shorter_until(polls.priority()), None, "{priority:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_worker_lets_others_in_now_and_then() {
        let processors = processors();
        let mut yield_policy = YieldPolicy::new();
        let mut yields = 0;
        for _ in 0..100 {
            tokio::time::advance(TURN / 4).await;
            yields +=
                usize::from(yield_policy.next(&processors, PriorityClass::Tiny) == Turn::Yield);
        }
        assert_eq!(yields, 20);
    }
}
