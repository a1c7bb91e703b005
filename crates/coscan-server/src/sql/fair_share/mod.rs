//! Turns on processors. While queries of several users run, each user has at most as many running tasks as there are
//! processors, however many queries the user has. Those who have had more than others have at most as many as their share of
//! the processors, as long as others have something to do. The system then shares the processors among users.
//!
//! A turn is one poll of a task. A turn that lasts long is preempted by the system, so that nobody waits for the turns
//! of others.

mod user;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use user::{BUSY, User};

/// The lead in service that a user may have before being held to a share of the processors. Users who take turns fairly are
/// ahead of each other by a few turns, of some milliseconds each.
const LEAD_MAX: Duration = Duration::from_millis(20);

/// The turns of all queries.
#[derive(Debug)]
pub(super) struct Turns {
    processors: usize,
    /// Users with tasks that are at work or wait, or were a short time ago.
    users: Mutex<HashMap<Arc<str>, User>>,
    /// Statements of each user that are being planned.
    planning: Mutex<HashMap<Arc<str>, usize>>,
}

impl Turns {
    /// Creates the turns of a number of processors.
    pub(super) fn new(processors: usize) -> Arc<Self> {
        Arc::new(Self { processors, users: Mutex::default(), planning: Mutex::default() })
    }

    fn users(&self) -> MutexGuard<'_, HashMap<Arc<str>, User>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn plannings(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.planning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a statement that is planned until the result is dropped. It waits for no turn, since it may be what frees the
    /// processors (`coscan_cancel`), but leaves fewer turns to the queries of its user.
    pub(super) fn plan(self: &Arc<Self>, user: &Arc<str>) -> Planning {
        *self.plannings().entry(Arc::clone(user)).or_default() += 1;
        Planning { turns: Arc::clone(self), user: Arc::clone(user) }
    }

    /// The most turns of a user at once: as many as processors for the largest weight, fewer for others and while
    /// statements are planned; the share of the processors if the user has had more than others who are busy; at least one.
    fn turns_max(&self, users: &HashMap<Arc<str>, User>, user: &str, now: Instant) -> usize {
        if users.len() <= 1 {
            return usize::MAX;
        }
        let own = users.get(user);
        let (weight, service) = own.map_or((1, Duration::ZERO), |own| (own.weight, own.service));
        let (mut largest, mut sum, mut is_ahead) = (weight, u64::from(weight), false);
        for (_, other) in users.iter().filter(|(name, _)| name.as_ref() != user) {
            largest = largest.max(other.weight);
            if other.is_busy(now) {
                sum += u64::from(other.weight);
                is_ahead |= other.service + LEAD_MAX < service;
            }
        }
        let weights = if is_ahead { sum } else { u64::from(largest) };
        let share = (self.processors as u64).saturating_mul(u64::from(weight)) / weights.max(1);
        let planning = self.plannings().get(user).copied().unwrap_or(0);
        usize::try_from(share).unwrap_or(usize::MAX).saturating_sub(planning).max(1)
    }

    /// Begins a turn. If none is free, the task waits for one under the returned number, in the order of arrival.
    fn begin(&self, taker: &Taker, waits: Option<u64>, waker: &Waker) -> Result<(), u64> {
        let (mut users, now) = (self.users(), Instant::now());
        join(&mut users, taker, now);
        let most = self.turns_max(&users, &taker.user, now);
        let own = users.get_mut(&taker.user).expect("the user has joined");
        if waits.is_none() && own.waiting.is_empty() && own.turns < most {
            own.turns += 1;
            return Ok(());
        }
        let number = waits.unwrap_or(own.next);
        match own.waiting.iter_mut().find(|(waiting, _)| *waiting == number) {
            Some((_, before)) => before.clone_from(waker),
            None if waits.is_none() => {
                own.next += 1;
                own.waiting.push_back((number, waker.clone()));
            }
            None => {} // It was given a turn.
        }
        let mut woken = Vec::new();
        own.give(most, &mut woken);
        let given = own.given.iter().position(|given| *given == number);
        let begun = given.map(|at| own.given.swap_remove(at)).map(drop).ok_or(number);
        drop(users);
        woken.into_iter().for_each(Waker::wake);
        begun
    }

    /// Ends a turn, which has taken this long.
    fn end(&self, taker: &Taker, time: Duration) {
        self.change(&taker.user, |own| {
            own.turns -= 1;
            own.service += time / taker.weight.max(1);
            own.ended = Instant::now();
        });
    }

    /// Removes a task that waits or was given a turn.
    fn leave(&self, taker: &Taker, number: u64) {
        self.change(&taker.user, |own| {
            own.ended = Instant::now();
            own.waiting.retain(|(waiting, _)| *waiting != number);
            if let Some(at) = own.given.iter().position(|given| *given == number) {
                own.given.swap_remove(at);
                own.turns -= 1;
            }
        });
    }

    fn change(&self, user: &Arc<str>, change: impl FnOnce(&mut User)) {
        let (mut users, mut woken, now) = (self.users(), Vec::new(), Instant::now());
        if let Some(own) = users.get_mut(user) {
            change(own);
        }
        let before = users.len();
        if before > 1 {
            users.retain(|_, user| user.is_active(now));
        }
        // When a user has left, there is more for all others.
        let gain: Vec<Arc<str>> = match users.len() < before {
            true => users.keys().cloned().collect(),
            false => vec![Arc::clone(user)],
        };
        for user in gain {
            if users.get(&user).is_none_or(|own| own.waiting.is_empty()) {
                continue;
            }
            let most = self.turns_max(&users, &user, now);
            if let Some(own) = users.get_mut(&user) {
                own.give(most, &mut woken);
            }
        }
        drop(users);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Adds the user of a task, or notes that it is back. Whoever comes or is back begins with about the least service of those who
/// are busy: time without work is no credit, and work while nobody else had any is no debt.
fn join(users: &mut HashMap<Arc<str>, User>, taker: &Taker, now: Instant) {
    let is_back = users.get(&taker.user).is_none_or(|own| !own.is_busy(now));
    let busy = users.values().filter(|user| is_back && user.is_busy(now));
    let least = busy.map(|user| user.service).min().unwrap_or_default();
    let new = || User::new(taker.weight, least, now);
    let own = users.entry(Arc::clone(&taker.user)).or_insert_with(new);
    own.service = own.service.max(least.saturating_sub(LEAD_MAX));
    own.weight = taker.weight;
}

/// A statement that is being planned.
#[derive(Debug)]
pub(super) struct Planning {
    turns: Arc<Turns>,
    user: Arc<str>,
}

impl Drop for Planning {
    fn drop(&mut self) {
        let mut plannings = self.turns.plannings();
        if let Some(count) = plannings.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                plannings.remove(&self.user);
            }
        }
        drop(plannings);
        self.turns.change(&self.user, |_| {});
    }
}

/// A user, as one that takes turns.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    pub(super) turns: Arc<Turns>,
    pub(super) user: Arc<str>,
    pub(super) weight: u32,
}

impl Taker {
    /// Makes a task take turns.
    pub(super) fn task<F: Future + Unpin>(self, task: F) -> InTurns<F> {
        InTurns { taker: self, task, waits: None, retry: None }
    }
}

/// A task that is polled when its user has a turn.
pub(super) struct InTurns<F> {
    taker: Taker,
    task: F,
    /// The number under which it waits.
    waits: Option<u64>,
    /// The time at which it looks again, since others may be busy no longer, which nobody tells.
    retry: Option<Pin<Box<Sleep>>>,
}

impl<F: Future + Unpin> Future for InTurns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        while let Err(number) = this.taker.turns.begin(&this.taker, this.waits, context.waker()) {
            this.waits = Some(number);
            let retry = this.retry.get_or_insert_with(|| Box::pin(tokio::time::sleep(BUSY)));
            ready!(retry.as_mut().poll(context));
            this.retry = None;
        }
        (this.waits, this.retry) = (None, None);
        let _turn = Turn { taker: &this.taker, began: Instant::now() }; // Ends also if the task panics.
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

struct Turn<'a> {
    taker: &'a Taker,
    began: Instant,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.taker.turns.end(self.taker, self.began.elapsed());
    }
}

#[cfg(test)]
mod tests;
