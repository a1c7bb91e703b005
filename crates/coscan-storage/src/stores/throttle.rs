//! Requests to a store that asks to slow down (429, 503). They wait, and one at a time asks whether it is over.
//!
//! Every client of a store passes here, however many requests it has. So the reaction to "too many requests" is one
//! request every second or two, not all of them again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::jitter::Jitter;

/// The longest pause before the first probe. It doubles with each refusal.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// The longest pause between two probes: a store that serves again is noticed within this time.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Whether a store takes requests, and which request may be sent next.
#[derive(Debug)]
pub(super) struct Throttle {
    state: Mutex<State>,
    /// Wakes requests that wait.
    reopened: Notify,
    jitter: Arc<Jitter>,
}

#[derive(Debug, Default)]
struct State {
    throttled: Option<Throttled>,
}

#[derive(Debug)]
struct Throttled {
    since: Instant,
    /// When the next probe may be sent.
    next_probe: Instant,
    pause: Duration,
    /// The answer of the store.
    answer: Arc<str>,
}

/// The right to send a request.
#[derive(Debug)]
pub(super) struct Turn {
    granted: Instant,
}

/// A store asks to slow down.
#[derive(Debug, thiserror::Error)]
#[error("{SLOW_DOWN}, for {} s by now: {answer}", .duration.as_secs())]
pub(super) struct SlowDown {
    duration: Duration,
    answer: Arc<str>,
}

/// The prefix of the errors of stores that ask to slow down.
pub(crate) const SLOW_DOWN: &str = "the store asks to slow down";

impl Throttle {
    pub(super) fn new(jitter: Arc<Jitter>) -> Self {
        Self { state: Mutex::default(), reopened: Notify::new(), jitter }
    }

    /// Waits until a request may be sent: at once, unless the store asks to slow down. Otherwise it waits until the
    /// store serves others, or for a turn as a probe.
    ///
    /// # Errors
    /// If it still asks to slow down at the deadline.
    pub(super) async fn turn(&self, deadline: Instant) -> Result<Turn, SlowDown> {
        loop {
            // This precedes the look at the state, so a store that reopens in between wakes this
            // task.
            let reopened = self.reopened.notified();
            let next_probe = {
                let mut state = self.state();
                let now = Instant::now();
                let Some(throttled) = &mut state.throttled else {
                    return Ok(Turn { granted: now });
                };
                if throttled.next_probe <= now {
                    throttled.next_probe = now + self.jitter.up_to(throttled.pause);
                    return Ok(Turn { granted: now });
                }
                if deadline <= now {
                    let answer = Arc::clone(&throttled.answer);
                    return Err(SlowDown { duration: now - throttled.since, answer });
                }
                throttled.next_probe
            };
            tokio::select! {
                () = reopened => {}
                () = tokio::time::sleep_until(next_probe.min(deadline)) => {}
            }
        }
    }

    /// Notes that the store served a request.
    pub(super) fn served(&self, turn: &Turn) {
        let mut state = self.state();
        // The answer to a request that was sent before the store asked to slow down is ignored.
        if state.throttled.take_if(|throttled| turn.granted > throttled.since).is_some() {
            drop(state);
            self.reopened.notify_waiters();
        }
    }

    /// Notes that the store asked to slow down.
    pub(super) fn refused(&self, turn: &Turn, answer: &str) {
        let mut state = self.state();
        let now = Instant::now();
        match &mut state.throttled {
            Some(throttled) if turn.granted > throttled.since => {
                throttled.pause = (throttled.pause * 2).min(PAUSE_MAX);
                throttled.next_probe = now + self.jitter.up_to(throttled.pause);
            }
            // The request was sent with the one that was refused first.
            Some(_) => {}
            None => {
                let next_probe = now + self.jitter.up_to(PAUSE_FIRST);
                let (pause, answer) = (PAUSE_FIRST, answer.into());
                state.throttled = Some(Throttled { since: now, next_probe, pause, answer });
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, or two of which either is right alone.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
