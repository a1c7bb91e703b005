//! A circuit breaker: requests to a store that has been silent for a long time fail at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The silence of a store. Once it is long, requests fail at once, except for an occasional one that probes the store.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    /// After a silence of this length the store counts as gone.
    length_max: Duration,
    /// The time between two probes of a store that is gone.
    probe_interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    heard: Instant,
    /// The time of the first request since which none was answered.
    unanswered: Option<Instant>,
    probed: Instant,
}

impl CircuitBreaker {
    /// A store that has not been asked yet.
    pub(super) fn new(length_max: Duration, probe_interval: Duration) -> Self {
        let now = Instant::now();
        let state = State { heard: now, unanswered: None, probed: now };
        Self { length_max, probe_interval, state: Mutex::new(state) }
    }

    /// Notes a sign of life.
    pub(super) fn heard(&self) {
        let mut state = self.state();
        state.heard = Instant::now();
        state.unanswered = None;
    }

    /// Notes a request that was sent at `asked` and given up.
    pub(super) fn unanswered(&self, asked: Instant) {
        let mut state = self.state();
        // If other requests were answered meanwhile, this one was lost, and the store is there.
        if state.heard <= asked {
            state.unanswered.get_or_insert(asked);
        }
    }

    /// The length of the silence, if the store is gone and this is not the time for a probe.
    pub(super) fn is_open(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut state = self.state();
        let length = now - state.unanswered?;
        if length < self.length_max {
            return None;
        }
        if now - state.probed >= self.probe_interval {
            state.probed = now;
            return None;
        }
        Some(length)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one or two assignments, which cannot panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn pass(seconds: u32) {
        tokio::time::advance(SECOND * seconds).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_is_gone_after_a_long_silence_and_back_with_a_word() {
        let silence = CircuitBreaker::new(SECOND * 24, SECOND * 6);
        let asked = Instant::now();
        pass(6).await;
        silence.unanswered(asked);
        pass(17).await;
        assert_eq!(silence.is_open(), None);
        pass(1).await;
        // One request may probe.
        assert_eq!(silence.is_open(), None);
        assert_eq!(silence.is_open(), Some(SECOND * 24));
        pass(5).await;
        assert_eq!(silence.is_open(), Some(SECOND * 29));
        pass(1).await;
        assert_eq!(silence.is_open(), None);
        assert_eq!(silence.is_open(), Some(SECOND * 30));
        silence.heard();
        assert_eq!(silence.is_open(), None);
        pass(100).await;
        assert_eq!(silence.is_open(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_request_says_nothing_of_a_store_that_answers_others() {
        let silence = CircuitBreaker::new(SECOND * 24, SECOND * 6);
        let asked = Instant::now();
        pass(5).await;
        silence.heard();
        pass(1).await;
        silence.unanswered(asked);
        pass(100).await;
        assert_eq!(silence.is_open(), None);
        assert_eq!(silence.is_open(), None);
    }
}
