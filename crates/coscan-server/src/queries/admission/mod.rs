//! Limits the number of running queries by slots, and has a bounded queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::fair_queue::{FairQueue, QueueEntry};
use crate::users::User;

/// The number of slots that only administrators get, when all others are taken, to inspect the server and cancel
/// queries.
const OF_ADMINISTRATORS: usize = 2;

/// The slots of running queries. Users get the next ones in proportion to their weights, with each user's queries in
/// order.
#[derive(Debug)]
pub(super) struct Admission {
    slots: Arc<Slots>,
    bounds: Bounds,
}

/// The limits on running and waiting queries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) running_max: usize,
    /// The maximum number of slots of one user. The rest is for other users.
    pub(super) of_user_max: usize,
    pub(super) waiting_max: usize,
    pub(super) wait_max: Duration,
    /// The names of what takes slots, and of the remedy, for errors.
    pub(super) texts: (&'static str, &'static str),
}

#[derive(Debug)]
struct Slots {
    state: Mutex<State>,
    running_max: usize,
    of_user_max: usize,
}

/// The state of the slots. While a query waits, no slot is free for its user.
#[derive(Debug)]
struct State {
    taken: usize,
    taken_by_administrators: usize,
    /// The number of slots of each user who has any.
    of_users: HashMap<Arc<str>, usize>,
    waiting: FairQueue<(Arc<str>, oneshot::Sender<Slot>)>,
    is_closed: bool,
}

impl Slots {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_free(&self, state: &State, user: &str) -> bool {
        let of_user = state.of_users.get(user).copied().unwrap_or_default();
        state.taken < self.running_max && of_user < self.of_user_max
    }

    fn take(self: &Arc<Self>, state: &mut State, user: Arc<str>) -> Slot {
        state.taken += 1;
        *state.of_users.entry(Arc::clone(&user)).or_default() += 1;
        Slot(Some(Taken { slots: Arc::clone(self), user: Some(user) }))
    }
}

/// The right to run, which is returned when dropped.
#[derive(Debug)]
pub(super) struct Slot(Option<Taken>);

#[derive(Debug)]
struct Taken {
    slots: Arc<Slots>,
    /// The user of the slot, or `None` for a slot of administrators.
    user: Option<Arc<str>>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(Taken { slots, user }) = self.0.take() else { return };
        let mut guard = slots.state();
        let state = &mut *guard;
        match user {
            Some(user) => give_back(state, &user),
            None => state.taken_by_administrators -= 1,
        }
        while let State { waiting, of_users, taken, .. } = state
            && *taken < slots.running_max
            && let Some((user, next)) = waiting
                .pop(|user| of_users.get(user).copied().unwrap_or_default() < slots.of_user_max)
        {
            // A query that is about to leave takes no slot. If the slot were dropped here, it would
            // return under the lock.
            if let Err(mut slot) = next.send(slots.take(state, Arc::clone(&user))) {
                drop(slot.0.take());
                give_back(state, &user);
            }
        }
    }
}

fn give_back(state: &mut State, user: &Arc<str>) {
    state.taken -= 1;
    if let Some(of_user) = state.of_users.get_mut(user) {
        *of_user -= 1;
        if *of_user == 0 {
            state.of_users.remove(user);
        }
    }
}

/// One place in the queue.
struct Place<'a> {
    slots: &'a Slots,
    entry: QueueEntry,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let left = self.slots.state().waiting.remove(&self.entry);
        drop(left);
    }
}

impl Admission {
    pub(super) fn new(bounds: Bounds) -> Self {
        let state = State {
            taken: 0,
            taken_by_administrators: 0,
            of_users: HashMap::new(),
            waiting: FairQueue::new(),
            is_closed: false,
        };
        let Bounds { running_max, of_user_max, .. } = bounds;
        let slots = Slots { state: Mutex::new(state), running_max, of_user_max };
        Self { slots: Arc::new(slots), bounds }
    }

    /// Waits for a slot for a query of a user. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// If the queue is full and no other user has more queries in it, or another user needs the place later, no slot is
    /// free in time, or the server stops.
    pub(super) async fn admit(&self, user: &User, weight: u32) -> Result<Slot, QueryError> {
        let (sender, receiver) = oneshot::channel();
        let (_place, refused) = {
            let mut guard = self.slots.state();
            let state = &mut *guard;
            if state.is_closed {
                return Err(stopping());
            }
            let name: Arc<str> = user.name.as_str().into();
            if self.slots.has_free(state, &name) {
                return Ok(self.slots.take(state, name));
            }
            if user.is_known_administrator() && state.taken_by_administrators < OF_ADMINISTRATORS {
                state.taken_by_administrators += 1;
                return Ok(Slot(Some(Taken { slots: Arc::clone(&self.slots), user: None })));
            }
            // MockVerifiers keeps others out by filling the queue.
            let is_full = state.waiting.len() >= self.bounds.waiting_max;
            let refused = if is_full { state.waiting.make_place(&name) } else { None };
            if is_full && refused.is_none() {
                return Err(self.full());
            }
            let entry = state.waiting.push(&name, weight, (Arc::clone(&name), sender));
            (Place { slots: &self.slots, entry }, refused)
        };
        drop(refused); // Outside of the lock: it wakes a task.
        match tokio::time::timeout(self.bounds.wait_max, receiver).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) if self.slots.state().is_closed => Err(stopping()),
            Ok(Err(_)) => Err(self.full()),
            Err(_) => Err(QueryError::new(
                ErrorKind::Busy,
                format!(
                    "no place became free within {:?}, so this statement did not start; try again later, or raise \
                     `wait_max`",
                    self.bounds.wait_max
                ),
            )),
        }
    }

    fn full(&self) -> QueryError {
        let Bounds { running_max, waiting_max, texts: (what, raise), .. } = self.bounds;
        QueryError::new(
            ErrorKind::Busy,
            format!(
                "{running_max} {what} and {waiting_max} wait, which is all that this server admits; try again \
                 later{raise}"
            ),
        )
    }

    /// Admits no more queries, and refuses the waiting ones.
    pub(super) fn close(&self) {
        let mut state = self.slots.state();
        state.is_closed = true;
        let refused = std::mem::replace(&mut state.waiting, FairQueue::new());
        drop(state);
        drop(refused);
    }
}

fn stopping() -> QueryError {
    QueryError::new(ErrorKind::Stopping, "the server is about to stop; connect again later")
}

#[cfg(test)]
mod tests;
