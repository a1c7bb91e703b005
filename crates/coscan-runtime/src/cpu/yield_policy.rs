//! Workers of scans yield processors, to shorter scans above all.
//!
//! An async runtime does not preempt tasks: a task that is ready waits until those before it yield, and a query whose
//! batches are all there may run for a long time. So the workers of scans yield every millisecond. Those of the scan
//! with the least work left, which is done soonest, yield every 20. One that had to wait for long, because operators yield
//! when they like, works for a quarter of that time, for at most 20 ms. All pause while a scan of a shorter class works on
//! a chunk, for at most half of their time. A scan that its query does not poll works on none.

use std::time::Duration;

use tokio::time::Instant;

use crate::cpu::activity::WorkerActivity;
use crate::cpu::scheduler::CpuScheduler;

/// The time slice, for which a worker runs before it yields.
pub(crate) const TIME_SLICE: Duration = Duration::from_millis(1);

/// The longest time slice: that of a scan that has less work left than all others, or has waited for long.
const SLICE_MAX: Duration = Duration::from_millis(20);

/// After a wait for its turn, a time slice is at least this part of the wait.
const WAIT_DIVISOR: u32 = 4;

/// The longest pause between two time slices.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Decides when a worker yields.
#[derive(Debug)]
pub(crate) struct YieldPolicy {
    /// The start of its time slice.
    since: Instant,
    /// The end of its time slice, unless it is extended.
    until: Instant,
    /// The time of its last decision.
    asked: Instant,
    /// The time by which it has worked longer than paused.
    ahead: Duration,
}

/// The decision of a worker before its next batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum YieldDecision {
    /// The worker continues.
    Continue,
    /// The worker lets other tasks run.
    Yield,
    /// The worker pauses while shorter scans work, at most for this time.
    GiveWay(Duration),
}

impl YieldPolicy {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { since: now, until: now + TIME_SLICE, asked: now, ahead: Duration::ZERO }
    }

    /// The next decision of a worker of a scan.
    pub(crate) fn next(
        &mut self,
        scheduler: &CpuScheduler,
        activity: &WorkerActivity,
    ) -> YieldDecision {
        let now = Instant::now();
        self.ahead += now - self.asked;
        self.asked = now;
        if now <= self.until {
            return YieldDecision::Continue;
        }
        if now - self.since < SLICE_MAX && scheduler.has_least_left(activity) {
            self.until = now + TIME_SLICE;
            return YieldDecision::Continue;
        }
        self.start_slice(now);
        if self.ahead > TIME_SLICE && scheduler.shorter_until(activity.priority()).is_some() {
            return YieldDecision::GiveWay(self.ahead.min(PAUSE_MAX));
        }
        YieldDecision::Yield
    }

    /// Starts a new time slice after the worker has waited.
    pub(crate) fn resume(&mut self, has_paused: bool) {
        let now = Instant::now();
        let waited = now - self.asked;
        self.asked = now;
        self.start_slice(now);
        if has_paused {
            self.ahead = self.ahead.saturating_sub(waited);
        } else {
            self.until = now + (waited / WAIT_DIVISOR).clamp(TIME_SLICE, SLICE_MAX);
        }
    }

    fn start_slice(&mut self, now: Instant) {
        (self.since, self.until) = (now, now + TIME_SLICE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coscan_core::{PriorityClass, WorkerIndex};

    use super::*;
    use crate::cpu::activity::IDLE_AFTER;
    use crate::cpu::scheduler::tests::{give_way, scheduler, working};

    const WORKER: WorkerIndex = WorkerIndex(0);

    #[tokio::test(start_paused = true)]
    async fn a_long_scan_pauses_while_a_short_one_works() {
        let scheduler = scheduler();
        let (mut yield_policy, mut of_short) = (YieldPolicy::new(), YieldPolicy::new());
        let (long_scan, _long) = working(&scheduler, PriorityClass::Long);
        let (_, _other) = working(&scheduler, PriorityClass::Long);
        tokio::time::advance(TIME_SLICE * 2).await;
        assert_eq!(yield_policy.next(&scheduler, &long_scan), YieldDecision::Yield);
        let (short_scan, short) = working(&scheduler, PriorityClass::Short);
        assert_eq!(of_short.next(&scheduler, &short_scan), YieldDecision::Yield, "not to its like");
        let (_, tiny) = working(&scheduler, PriorityClass::Tiny);
        tokio::time::advance(TIME_SLICE * 2).await;
        assert!(matches!(of_short.next(&scheduler, &short_scan), YieldDecision::GiveWay(_)));
        drop(tiny);
        let YieldDecision::GiveWay(pause) = yield_policy.next(&scheduler, &long_scan) else {
            panic!("it goes on")
        };
        assert_eq!(pause, TIME_SLICE * 4);
        let ends = async {
            tokio::time::sleep(TIME_SLICE * 3).await;
            drop(short);
        };
        assert_eq!(tokio::join!(give_way(&scheduler, pause), ends).0, TIME_SLICE * 3);
        yield_policy.resume(true);
        assert_eq!(yield_policy.next(&scheduler, &long_scan), YieldDecision::Continue);
    }

    #[tokio::test(start_paused = true)]
    async fn it_pauses_for_half_of_its_time_at_most() {
        let scheduler = scheduler();
        let _short = working(&scheduler, PriorityClass::Short);
        let (long_scan, _long) = working(&scheduler, PriorityClass::Long);
        let mut yield_policy = YieldPolicy::new();
        let (mut worked, mut stood) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..1_000 {
            tokio::time::advance(TIME_SLICE * 8).await;
            worked += TIME_SLICE * 8;
            if let YieldDecision::GiveWay(pause) = yield_policy.next(&scheduler, &long_scan) {
                stood += give_way(&scheduler, pause).await;
                yield_policy.resume(true);
            }
        }
        // Timers have a resolution of a millisecond.
        assert!(stood > worked / 2 && stood <= worked * 5 / 4, "{stood:?} of {worked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn every_worker_yields_now_and_then() {
        let scheduler = scheduler();
        let (tiny_scan, _tiny) = working(&scheduler, PriorityClass::Tiny);
        let (_, _other) = working(&scheduler, PriorityClass::Tiny);
        assert_eq!(slice(&scheduler, &tiny_scan).await, TIME_SLICE + TIME_SLICE / 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_scan_with_least_work_left_yields_less_often() {
        let scheduler = scheduler();
        let (scan, worker) = working(&scheduler, PriorityClass::Long);
        let _other_worker = scheduler.add(Arc::clone(&scan), WORKER);
        let (other_scan, _other) = working(&scheduler, PriorityClass::Long);
        scan.set_work_left_ns(1);
        other_scan.set_work_left_ns(2);
        assert_eq!(slice(&scheduler, &scan).await, SLICE_MAX);
        assert_eq!(slice(&scheduler, &other_scan).await, TIME_SLICE + TIME_SLICE / 4);
        scan.set_work_left_ns(2);
        assert_eq!(slice(&scheduler, &scan).await, TIME_SLICE + TIME_SLICE / 4, "as much left");
        scan.set_work_left_ns(3);
        other_scan.poll_ends(WORKER, scheduler.now());
        tokio::time::advance(IDLE_AFTER).await;
        assert_eq!(slice(&scheduler, &scan).await, SLICE_MAX, "the other is not polled");
        drop(worker);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_had_to_wait_for_its_turn_works_for_longer() {
        let scheduler = scheduler();
        let (scan, _worker) = working(&scheduler, PriorityClass::Long);
        let (other_scan, _other) = working(&scheduler, PriorityClass::Long);
        scan.set_work_left_ns(2);
        other_scan.set_work_left_ns(1);
        for (waited, slice) in [(0, 1), (4, 1), (20, 5), (1_000, 20)] {
            let mut yield_policy = YieldPolicy::new();
            tokio::time::advance(TIME_SLICE * waited).await;
            yield_policy.resume(false);
            let slice = TIME_SLICE * slice + TIME_SLICE / 4;
            assert_eq!(until_it_yields(&scheduler, &scan, yield_policy).await, slice, "{waited}");
        }
    }

    /// The time that a worker works until it yields, if it decides every quarter of a millisecond.
    async fn slice(scheduler: &CpuScheduler, activity: &WorkerActivity) -> Duration {
        until_it_yields(scheduler, activity, YieldPolicy::new()).await
    }

    async fn until_it_yields(
        scheduler: &CpuScheduler,
        activity: &WorkerActivity,
        mut yield_policy: YieldPolicy,
    ) -> Duration {
        let started = Instant::now();
        loop {
            tokio::time::advance(TIME_SLICE / 4).await;
            if yield_policy.next(scheduler, activity) == YieldDecision::Yield {
                return started.elapsed();
            }
        }
    }
}
