//! The times since which the oldest requests for memory have waited, readable without the lock.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coscan_core::{ActiveBufferManager, MemoryLimits, MemoryStage, Time};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// The time that stands for no waiting request.
const NEVER: u64 = u64::MAX;

/// The times since which requests for memory have waited in core, as of the last decision.
#[derive(Debug)]
pub(crate) struct WaitingRequests {
    /// The time of the oldest request of each stage or one before it, in nanoseconds of core's time.
    oldest_ns: [AtomicU64; MemoryStage::ALL.len()],
    limits: MemoryLimits,
    /// Notified when a request begins to wait.
    entered: Notify,
}

impl WaitingRequests {
    /// Starts without waiting requests.
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        let oldest_ns = MemoryStage::ALL.map(|_| AtomicU64::new(NEVER));
        Self { oldest_ns, limits, entered: Notify::new() }
    }

    /// Notes the requests that wait now. Returns true if one has begun to wait; [`Self::notify`] is then due, once no
    /// lock is held.
    pub(crate) fn note(&self, core: &ActiveBufferManager) -> bool {
        let mut has_entered = false;
        for stage in MemoryStage::ALL {
            let oldest_ns = core.oldest_memory_request(stage).map_or(NEVER, |since| since.0);
            let noted_ns = &self.oldest_ns[stage as usize];
            let before_ns = noted_ns.load(Ordering::Relaxed);
            if before_ns != oldest_ns {
                noted_ns.store(oldest_ns, Ordering::Relaxed); // Only the owner of the state notes.
                has_entered |= before_ns == NEVER;
            }
        }
        has_entered
    }

    /// Wakes the tasks in [`Self::until_waited`].
    pub(crate) fn notify(&self) {
        self.entered.notify_waiters();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.oldest(MemoryStage::Opening).is_none()
    }

    /// Whether a request is overdue, so that none of this stage may overtake it.
    pub(crate) fn is_closed_to(&self, stage: MemoryStage, now: Time) -> bool {
        self.oldest(stage).is_some_and(|oldest| self.limits.is_overdue(now, oldest))
    }

    /// Whether a request has waited for `time`.
    pub(crate) fn has_waited(&self, time: Duration, now: Time) -> bool {
        self.waited(now).is_some_and(|waited| waited >= time)
    }

    /// Waits until a request has waited for `time`. Timers are on `runtime`.
    pub(crate) async fn until_waited(
        &self,
        time: Duration,
        now: impl Fn() -> Time,
        runtime: &Handle,
    ) {
        loop {
            // This precedes the look, since a request may enter in between.
            let mut entered = pin!(self.entered.notified());
            entered.as_mut().enable();
            match self.waited(now()) {
                None => entered.await,
                Some(waited) if waited >= time => return,
                // The request may be met meanwhile, and others wait.
                Some(waited) => {
                    let sleep = {
                        let _runtime = runtime.enter();
                        tokio::time::sleep(time - waited)
                    };
                    sleep.await;
                }
            }
        }
    }

    /// The time for which the oldest request has waited.
    fn waited(&self, now: Time) -> Option<Duration> {
        let oldest = self.oldest(MemoryStage::Opening);
        oldest.map(|oldest| Duration::from_nanos(now.since(oldest)))
    }

    fn oldest(&self, stage: MemoryStage) -> Option<Time> {
        let oldest_ns = self.oldest_ns[stage as usize].load(Ordering::Relaxed);
        (oldest_ns != NEVER).then_some(Time(oldest_ns))
    }
}
