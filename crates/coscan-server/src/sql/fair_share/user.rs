//! A user who takes turns.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

/// The time for which a user counts as active after the last turn, since clients pause between their queries.
pub(super) const ACTIVE: Duration = Duration::from_secs(1);

/// The time for which a user counts as busy after the last turn, since short queries pause between their steps: longer than
/// a client takes to send the next query, shorter than anybody notices.
pub(super) const BUSY: Duration = Duration::from_millis(5);

/// A user with tasks that are at work or wait, or were a short time ago.
#[derive(Debug)]
pub(super) struct User {
    pub(super) weight: u32,
    /// The service received: the time of all turns for each unit of weight. Users who come, or come back, begin with the least
    /// of the others.
    pub(super) service: Duration,
    /// The end of the last turn.
    pub(super) ended: Instant,
    /// The number of turns, including those given to waiting tasks.
    pub(super) turns: usize,
    pub(super) next: u64,
    pub(super) waiting: VecDeque<(u64, Waker)>,
    /// The turns that have not begun yet.
    pub(super) given: Vec<u64>,
}

impl User {
    pub(super) fn new(weight: u32, service: Duration, now: Instant) -> Self {
        let (waiting, given) = (VecDeque::new(), Vec::new());
        Self { weight, service, ended: now, turns: 0, next: 0, waiting, given }
    }

    pub(super) fn is_active(&self, now: Instant) -> bool {
        self.has_work_within(ACTIVE, now)
    }

    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.has_work_within(BUSY, now)
    }

    fn has_work_within(&self, pause: Duration, now: Instant) -> bool {
        self.turns > 0 || !self.waiting.is_empty() || now.duration_since(self.ended) < pause
    }

    /// Gives turns to waiting tasks, up to a limit. Collects the wakers of these tasks.
    pub(super) fn give(&mut self, most: usize, woken: &mut Vec<Waker>) {
        while self.turns < most
            && let Some((number, waker)) = self.waiting.pop_front()
        {
            self.turns += 1;
            self.given.push(number);
            woken.push(waker);
        }
    }
}
