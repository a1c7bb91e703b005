//! Processors by turns: while queries of several users run, each user has as many tasks at work as there are processors,
//! and no more, however many queries the user has. The system then shares the processors among users.
//!
//! A turn is one poll of a task. It is the system that takes a processor away from a turn that lasts long: nobody waits
//! for the turns of others.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long a user counts after the last turn: clients think between their queries.
const ACTIVE: Duration = Duration::from_secs(1);

/// The turns of a user have not ended for so long: they keep their threads.
const STUCK: Duration = Duration::from_millis(100);

/// The turns of all queries.
#[derive(Debug)]
pub(super) struct Turns {
    processors: usize,
    /// Users with tasks that are at work or wait, or were a short time ago.
    users: Mutex<HashMap<Arc<str>, User>>,
}

#[derive(Debug)]
struct User {
    weight: u32,
    /// When a turn ended last.
    ended: Instant,
    /// Turns, those that were given to tasks that waited included.
    turns: usize,
    next: u64,
    waiting: VecDeque<(u64, Waker)>,
    /// Turns that have not begun yet.
    given: Vec<u64>,
}

impl User {
    fn new(weight: u32) -> Self {
        let (waiting, given) = (VecDeque::new(), Vec::new());
        Self { weight, ended: Instant::now(), turns: 0, next: 0, waiting, given }
    }

    fn is_active(&self) -> bool {
        self.turns > 0 || !self.waiting.is_empty() || self.ended.elapsed() < ACTIVE
    }

    /// Gives turns to tasks that wait, up to a bound. Returns whom to wake.
    fn give(&mut self, most: usize, woken: &mut Vec<Waker>) {
        while self.turns < most
            && let Some((number, waker)) = self.waiting.pop_front()
        {
            self.turns += 1;
            self.given.push(number);
            woken.push(waker);
        }
    }
}

impl Turns {
    /// For so many processors.
    pub(super) fn new(processors: usize) -> Arc<Self> {
        Arc::new(Self { processors, users: Mutex::default() })
    }

    fn users(&self) -> MutexGuard<'_, HashMap<Arc<str>, User>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the turns of a user take all the processors, and none has ended for a while.
    pub(super) fn is_stuck(&self, user: &str) -> bool {
        let users = self.users();
        users
            .get(user)
            .is_some_and(|own| own.turns >= self.processors && own.ended.elapsed() >= STUCK)
    }

    /// The most turns of a user at once: as many as processors for the largest weight, fewer for others.
    fn most(&self, users: &HashMap<Arc<str>, User>, weight: u32) -> usize {
        if users.len() <= 1 {
            return usize::MAX;
        }
        let largest = users.values().map(|user| user.weight).max().unwrap_or(1).max(1);
        let share = self.processors.saturating_mul(weight as usize) / largest as usize;
        share.max(1)
    }

    /// Begins a turn; or waits for one, under the number that is returned.
    fn begin(&self, taker: &Taker, waits: Option<u64>, waker: &Waker) -> Result<(), u64> {
        let mut users = self.users();
        let new = || User::new(taker.weight);
        users.entry(Arc::clone(&taker.user)).or_insert_with(new).weight = taker.weight;
        let most = self.most(&users, taker.weight);
        let own = users.entry(Arc::clone(&taker.user)).or_insert_with(new);
        if let Some(number) = waits {
            if let Some(at) = own.given.iter().position(|given| *given == number) {
                own.given.swap_remove(at);
                return Ok(());
            }
            own.waiting.retain(|(waiting, _)| *waiting != number);
        }
        if own.turns < most {
            own.turns += 1;
            return Ok(());
        }
        let number = waits.unwrap_or(own.next);
        own.next += u64::from(waits.is_none());
        own.waiting.push_back((number, waker.clone()));
        Err(number)
    }

    /// Ends a turn.
    fn end(&self, taker: &Taker) {
        self.change(taker, |own| own.turns -= 1);
    }

    /// A task leaves that waits, or was given a turn.
    fn leave(&self, taker: &Taker, number: u64) {
        self.change(taker, |own| {
            own.waiting.retain(|(waiting, _)| *waiting != number);
            if let Some(at) = own.given.iter().position(|given| *given == number) {
                own.given.swap_remove(at);
                own.turns -= 1;
            }
        });
    }

    fn change(&self, taker: &Taker, change: impl FnOnce(&mut User)) {
        let (mut users, mut woken) = (self.users(), Vec::new());
        if let Some(own) = users.get_mut(&taker.user) {
            change(own);
            own.ended = Instant::now();
        }
        if users.len() > 1 {
            users.retain(|_, user| user.is_active());
        }
        let most = self.most(&users, taker.weight);
        if let Some(own) = users.get_mut(&taker.user) {
            own.give(most, &mut woken);
        }
        drop(users);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Who takes turns.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    pub(super) turns: Arc<Turns>,
    pub(super) user: Arc<str>,
    pub(super) weight: u32,
}

impl Taker {
    /// A task that takes turns.
    pub(super) fn task<F: Future + Unpin>(self, task: F) -> InTurns<F> {
        InTurns { taker: self, task, waits: None }
    }
}

/// A task that is polled when its user has a turn.
pub(super) struct InTurns<F> {
    taker: Taker,
    task: F,
    /// The number under which it waits.
    waits: Option<u64>,
}

impl<F: Future + Unpin> Future for InTurns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if let Err(number) = this.taker.turns.begin(&this.taker, this.waits, context.waker()) {
            this.waits = Some(number);
            return Poll::Pending;
        }
        this.waits = None;
        let _turn = Turn(&this.taker); // Ends also if the task panics.
        Pin::new(&mut this.task).poll(context)
    }
}

impl<F> Drop for InTurns<F> {
    fn drop(&mut self) {
        if let Some(number) = self.waits {
            self.taker.turns.leave(&self.taker, number);
        }
    }
}

struct Turn<'a>(&'a Taker);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turns.end(self.0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::poll;

    use super::*;

    fn taker(turns: &Arc<Turns>, user: &str, weight: u32) -> Taker {
        Taker { turns: Arc::clone(turns), user: user.into(), weight }
    }

    fn begins(taker: &Taker) -> bool {
        taker.turns.begin(taker, None, Waker::noop()).is_ok()
    }

    #[test]
    fn several_users_have_turns_by_weight() {
        let turns = Turns::new(4);
        let [ann, bob, eve] =
            [("ann", 2), ("bob", 1), ("eve", 1)].map(|(user, weight)| taker(&turns, user, weight));
        assert_eq!((0..8).filter(|_| begins(&ann)).count(), 8, "she is alone");
        assert_eq!((0..9).filter(|_| begins(&bob)).count(), 2);
        assert_eq!((0..9).filter(|_| begins(&eve)).count(), 2);
        (0..5).for_each(|_| turns.end(&ann));
        assert_eq!(turns.users()["ann"].turns, 4, "one who waited has a turn");
        assert!(!begins(&ann), "she is not alone any more");
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_a_turn_ends() {
        let turns = Turns::new(1);
        let (ann, bob) = (taker(&turns, "ann", 1), taker(&turns, "bob", 1));
        assert!(begins(&bob) && begins(&ann));
        let [mut first, mut second] = [(); 2].map(|()| ann.clone().task(Box::pin(async {})));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        turns.end(&ann);
        drop(first); // It was given the turn.
        second.await;
        assert_eq!(turns.users()["ann"].turns, 0);
    }

    #[tokio::test]
    async fn a_panic_ends_the_turn() {
        let turns = Turns::new(1);
        let task = taker(&turns, "ann", 1).task(Box::pin(async { panic!("broken") }));
        assert!(tokio::spawn(task).await.is_err());
        assert_eq!(turns.users()["ann"].turns, 0);
    }
}
