//! Whether a store still answers: one that has been silent for long is not waited for by everybody in turn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What was heard of a store. A circuit breaker: once the store has said nothing for long, requests fail at once, but
/// for one now and then that finds out whether it is back.
#[derive(Debug)]
pub(super) struct Silence {
    /// After so long a silence the store counts as gone.
    length_max: Duration,
    /// How often a store that is gone is asked.
    probe_interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    heard: Instant,
    /// When the first of the requests was sent that nothing was heard of since.
    unanswered: Option<Instant>,
    probed: Instant,
}

impl Silence {
    /// Nothing is known of the store yet.
    pub(super) fn new(length_max: Duration, probe_interval: Duration) -> Self {
        let now = Instant::now();
        let state = State { heard: now, unanswered: None, probed: now };
        Self { length_max, probe_interval, state: Mutex::new(state) }
    }

    /// Something came.
    pub(super) fn heard(&self) {
        let mut state = self.state();
        state.heard = Instant::now();
        state.unanswered = None;
    }

    /// A request was given up that waited from `asked` on.
    pub(super) fn unanswered(&self, asked: Instant) {
        let mut state = self.state();
        // If others were answered meanwhile, it is the request that was lost, not the store.
        if state.heard <= asked {
            state.unanswered.get_or_insert(asked);
        }
    }

    /// How long the store has been silent, if it is of no use to ask it now.
    pub(super) fn is_gone(&self) -> Option<Duration> {
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
        // Each change is one assignment or two that no panic comes between.
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
        let silence = Silence::new(SECOND * 24, SECOND * 6);
        let asked = Instant::now();
        pass(6).await;
        silence.unanswered(asked);
        pass(17).await;
        assert_eq!(silence.is_gone(), None);
        pass(1).await;
        // One may ask.
        assert_eq!(silence.is_gone(), None);
        assert_eq!(silence.is_gone(), Some(SECOND * 24));
        pass(5).await;
        assert_eq!(silence.is_gone(), Some(SECOND * 29));
        pass(1).await;
        assert_eq!(silence.is_gone(), None);
        assert_eq!(silence.is_gone(), Some(SECOND * 30));
        silence.heard();
        assert_eq!(silence.is_gone(), None);
        pass(100).await;
        assert_eq!(silence.is_gone(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_request_says_nothing_of_a_store_that_answers_others() {
        let silence = Silence::new(SECOND * 24, SECOND * 6);
        let asked = Instant::now();
        pass(5).await;
        silence.heard();
        pass(1).await;
        silence.unanswered(asked);
        pass(100).await;
        assert_eq!(silence.is_gone(), None);
        assert_eq!(silence.is_gone(), None);
    }
}
