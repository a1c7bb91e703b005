//! The pump: the task that applies what was posted, makes the steps of walks, calls core in time, and reclaims memory
//! for waiting requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use coscan_core::Time;
use tokio::time::Instant;

use super::handle::Driver;
use crate::io::load_threads::IoRuntime;
use crate::observe::recorder::Recorder;
use crate::options::Options;
use crate::sync::bell::Bell;
use crate::sync::destructor::InDestructor;

/// The pause of the pump after it has looked for memory in vain, however often some is returned.
const MEMORY_PAUSE: Duration = Duration::from_millis(1);

/// The interval at which the pump looks for memory while requests wait and there are decoded columns or metadata that
/// queries hold. These can be dropped once queries release them, which is not reported.
const UNUSED_INTERVAL: Duration = Duration::from_millis(10);

/// The time at which the pump looks for memory for waiting requests.
enum MemorySearch {
    /// It looks when the bell rings.
    Idle,
    /// It has looked in vain, and does not look again before this time.
    Resting(Instant),
}

/// The event that the pump waits for.
enum Next {
    /// The pump does not wait, since there is more to do.
    Step,
    /// The pump waits for the bell, at most for this time.
    Bell(Option<Duration>),
}

impl Driver {
    /// Starts a driver, its pump, and a task that drops idle pages, values and footers as long as there is a driver.
    pub(crate) fn start(
        options: Options,
        io_runtime: IoRuntime,
        recorder: Option<Recorder>,
    ) -> Arc<Self> {
        let driver = Self::new(options, io_runtime, recorder);
        let closing = Closing(Arc::downgrade(&driver));
        driver.runtime().spawn(pump(closing, Arc::clone(driver.bell())));
        driver.drop_idle_regularly();
        driver
    }

    /// Makes one turn: one drain, and one step of one walk.
    fn turn(self: &Arc<Self>, search: &mut MemorySearch) -> Next {
        let (has_walks, timeout) = self.own(self.lock(), |state, now| {
            if state.core.poll_timeout().is_some_and(|time| time <= now) {
                state.report_pauses(now);
                state.core.handle_timeout(now);
            }
            state.time_out_requests(now);
            state.time_out_peers(now);
            state.revoke_for_others(now);
            state.step(now);
            state.decide(now);
            state.searched_available_bytes = state.core.available_bytes();
            state.armed = state.timeout(now);
            let until = |time: Time| Duration::from_nanos(time.since(now));
            (!state.walks.is_empty(), state.armed.map(until))
        });
        self.search_memory(search);
        if has_walks {
            return Next::Step;
        }
        let search_in = match search {
            MemorySearch::Resting(until) => Some(until.saturating_duration_since(Instant::now())),
            MemorySearch::Idle => {
                let in_use =
                    || self.decoded().unexpected_bytes() + self.memory.usage().metadata_bytes;
                (!self.waiting_requests.is_empty() && in_use() > 0).then_some(UNUSED_INTERVAL)
            }
        };
        Next::Bell(timeout.into_iter().chain(search_in).min())
    }

    /// Looks for memory that can be reclaimed for waiting requests, if some was returned or it is time to look again.
    fn search_memory(self: &Arc<Self>, search: &mut MemorySearch) {
        let credit = self.memory.credit();
        let is_due = match search {
            MemorySearch::Resting(until) => Instant::now() >= *until,
            MemorySearch::Idle => credit.is_wanted(),
        };
        if !is_due {
            return;
        }
        let has_rested = matches!(search, MemorySearch::Resting(_));
        // Memory that is returned from now on is found below, or rings the bell later.
        match has_rested {
            true => credit.mark_wanted(),
            false => drop(credit.clear_wanted()),
        }
        self.reclaim_for_requests();
        // Workers that wait to share a column look themselves, and mark again that they wait.
        self.memory.freed.notify_waiters();
        *search = match (self.waiting_requests.is_empty(), has_rested) {
            (true, _) | (false, true) => MemorySearch::Idle,
            (false, false) => MemorySearch::Resting(Instant::now() + MEMORY_PAUSE),
        };
    }

    fn drop_idle_regularly(&self) {
        let (driver, idle_timeout) = (self.this.clone(), self.options().idle_timeout);
        self.runtime().spawn(async move {
            loop {
                tokio::time::sleep(idle_timeout).await;
                let Some(driver) = driver.upgrade() else { return };
                driver.call(|state, now| state.core.evict_idle(now));
                driver.drop_unused_idle();
                driver.extensions().give_back_idle();
                driver.open_files().forget_closed();
            }
        });
    }

    /// Ends all waits, because the runtime of loads is gone, and the pump with it.
    fn close(self: &Arc<Self>) {
        self.is_closed.store(true, Ordering::Release);
        self.call(|state, now| state.close(now));
        self.memory.freed.notify_waiters();
    }

    /// Makes turns until there is nothing left to do.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(super) fn settled(self: &Arc<Self>) {
        while matches!(self.turn(&mut MemorySearch::Idle), Next::Step) {}
    }
}

async fn pump(closing: Closing, bell: Arc<Bell>) {
    let Closing(driver) = &closing;
    let mut search = MemorySearch::Idle;
    loop {
        // The manager may be dropped while this sleeps, and then rings.
        let next = driver.upgrade().map(|driver| driver.turn(&mut search));
        let Some(next) = next else { return };
        match next {
            Next::Step => tokio::task::yield_now().await,
            Next::Bell(at_most) => bell.listen(at_most).await,
        }
    }
}

/// Closes the driver when dropped. The runtime may be dropped before the manager, even before it has polled the pump.
struct Closing(Weak<Driver>);

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(driver) = self.0.upgrade() {
            let _allowed = InDestructor::except();
            driver.close();
        }
    }
}
