//! How many queries run at once: a number of slots, and a queue with a bound.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::fair_queue::{FairQueue, QueueEntry};
use crate::users::User;

/// Slots that only administrators get, when all others are taken: they look at the server and cancel queries.
const OF_ADMINISTRATORS: usize = 2;

/// Slots for what runs. Users get the next ones in proportion to their weights, each user's queries in their order.
#[derive(Debug)]
pub(super) struct Admission {
    slots: Arc<Slots>,
    bounds: Bounds,
}

/// How many run and wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) running_max: usize,
    /// The most slots of one user: what is left is for others.
    pub(super) of_user_max: usize,
    pub(super) waiting_max: usize,
    pub(super) wait_max: Duration,
    /// What has slots, and what would give more, for errors.
    pub(super) texts: (&'static str, &'static str),
}

#[derive(Debug)]
struct Slots {
    state: Mutex<State>,
    running_max: usize,
    of_user_max: usize,
}

/// While a query waits, no slot is free for its user.
#[derive(Debug)]
struct State {
    taken: usize,
    taken_by_administrators: usize,
    /// Slots of each user who has any.
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

/// The right to run; given back when dropped.
#[derive(Debug)]
pub(super) struct Slot(Option<Taken>);

#[derive(Debug)]
struct Taken {
    slots: Arc<Slots>,
    /// Whose slot it is; `None` for one of those for administrators.
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
            // Who is about to leave takes none. Dropped as it is, the slot would come here again, under the lock.
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
    /// If the queue is full and nobody has more queries in it, or another user needs the place later, no slot comes free
    /// in time, or the server stops.
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
            // Nobody keeps others out by filling the queue.
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

    /// Admits no more queries; those that wait are refused.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;
    use std::task::Poll;

    use futures::poll;

    use super::*;
    use crate::users::{Users, Verifier};

    const LONG: Duration = Duration::from_secs(3600);

    fn admission(running_max: usize, waiting_max: usize, wait_max: Duration) -> Admission {
        let (of_user_max, texts) = (running_max, ("queries run", ""));
        Admission::new(Bounds { running_max, of_user_max, waiting_max, wait_max, texts })
    }

    /// For a user without a password.
    async fn admit(admission: &Admission, user: &str, weight: u32) -> Result<Slot, QueryError> {
        let user = Users::anyone().unwrap().find(user).unwrap();
        admission.admit(&user, weight).await
    }

    fn waiting(admission: &Admission) -> usize {
        admission.slots.state().waiting.len()
    }

    /// Users with passwords, of whom Root is an administrator.
    fn known_users() -> Users {
        let verifier = Verifier::of_password("x").unwrap();
        let entry =
            |name, admin| format!("[users.{name}]\nverifier = '{verifier}'\nadmin = {admin}\n");
        Users::parse(&(entry("ann", false) + &entry("bob", false) + &entry("root", true))).unwrap()
    }

    #[tokio::test]
    async fn a_user_does_not_get_all_slots_and_who_waits_behind_gets_the_rest() {
        let users = known_users();
        let [ann, bob] = ["ann", "bob"].map(|name| users.find(name).unwrap());
        let texts = ("queries run", "");
        let bounds =
            Bounds { running_max: 4, of_user_max: 3, waiting_max: 9, wait_max: LONG, texts };
        let admission = Admission::new(bounds);
        let mut of_ann = Vec::new();
        for _ in 0..3 {
            of_ann.push(admission.admit(&ann, 1).await.unwrap());
        }
        let mut fourth = pin!(admission.admit(&ann, 1));
        assert!(poll!(&mut fourth).is_pending());
        let of_bob = admission.admit(&bob, 1).await.unwrap();
        drop(of_bob);
        assert!(poll!(&mut fourth).is_pending(), "the slot of others");
        drop(of_ann.pop());
        fourth.await.unwrap();
    }

    #[tokio::test]
    async fn administrators_are_admitted_when_all_slots_are_taken() {
        let users = known_users();
        let [ann, root] = ["ann", "root"].map(|name| users.find(name).unwrap());
        let admission = admission(1, 9, LONG);
        let _running = admission.admit(&ann, 1).await.unwrap();
        let [first, second] = [(); 2].map(|()| admission.admit(&root, 1));
        let (first, _second) = (first.await.unwrap(), second.await.unwrap());
        assert!(poll!(pin!(admission.admit(&root, 1))).is_pending());
        drop(first);
        admission.admit(&root, 1).await.unwrap();
        // Without passwords every name is an administrator's, and means nothing.
        assert!(poll!(pin!(admit(&admission, "eve", 1))).is_pending());
    }

    #[tokio::test]
    async fn who_fills_the_queue_gives_up_places_to_others() {
        let admission = admission(1, 3, LONG);
        let running = admit(&admission, "ann", 1).await.unwrap();
        let mut of_ann: Vec<_> = (0..3).map(|_| Box::pin(admit(&admission, "ann", 1))).collect();
        for waiting in &mut of_ann {
            assert!(poll!(waiting).is_pending());
        }
        let mut of_bob = Box::pin(admit(&admission, "bob", 1));
        assert!(poll!(&mut of_bob).is_pending());
        let Poll::Ready(Err(refused)) = poll!(&mut of_ann[2]) else { panic!("Ann's newest stays") };
        assert_eq!(refused.kind, ErrorKind::Busy);
        // Bob has one and Ann two: now each refusal is the newcomer's.
        for user in ["ann", "bob"] {
            assert_eq!(
                admit(&admission, user, 1).await.unwrap_err().kind,
                ErrorKind::Busy,
                "{user}"
            );
        }
        drop(running);
        let first = of_ann.remove(0).await.unwrap();
        drop(first);
        of_bob.await.unwrap();
    }

    #[tokio::test]
    async fn queries_beyond_the_slots_wait_in_their_order_and_beyond_the_queue_are_refused() {
        let admission = admission(1, 2, LONG);
        let first = admit(&admission, "ann", 1).await.unwrap();
        let mut second = pin!(admit(&admission, "ann", 1));
        let mut third = pin!(admit(&admission, "ann", 1));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        assert_eq!(admit(&admission, "ann", 1).await.unwrap_err().kind, ErrorKind::Busy);
        drop(first);
        let second = second.await.unwrap();
        assert!(poll!(&mut third).is_pending());
        drop(second);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn who_leaves_the_queue_makes_place() {
        let admission = admission(1, 1, LONG);
        let _first = admit(&admission, "ann", 1).await.unwrap();
        {
            let mut second = pin!(admit(&admission, "ann", 1));
            assert!(poll!(&mut second).is_pending());
            assert_eq!(waiting(&admission), 1);
        }
        assert_eq!(waiting(&admission), 0);
        let mut third = pin!(admit(&admission, "ann", 1));
        assert!(poll!(&mut third).is_pending());
    }

    #[tokio::test]
    async fn waiting_ends_in_time_and_when_the_server_stops() {
        let refusing = admission(1, 2, Duration::ZERO);
        let _first = admit(&refusing, "ann", 1).await.unwrap();
        assert_eq!(admit(&refusing, "ann", 1).await.unwrap_err().kind, ErrorKind::Busy);
        let admission = admission(1, 2, LONG);
        let _first = admit(&admission, "ann", 1).await.unwrap();
        let mut second = pin!(admit(&admission, "ann", 1));
        assert!(poll!(&mut second).is_pending());
        admission.close();
        assert_eq!(second.await.unwrap_err().kind, ErrorKind::Stopping);
        assert_eq!(admit(&admission, "ann", 1).await.unwrap_err().kind, ErrorKind::Stopping);
    }

    #[tokio::test]
    async fn who_gives_up_with_a_slot_gives_it_back() {
        let admission = admission(1, 2, LONG);
        let first = admit(&admission, "ann", 1).await.unwrap();
        {
            let mut second = pin!(admit(&admission, "ann", 1));
            assert!(poll!(&mut second).is_pending());
            drop(first);
        }
        admit(&admission, "ann", 1).await.unwrap();
    }

    #[tokio::test]
    async fn users_get_slots_in_proportion_to_their_weights() {
        let admission = admission(1, 100, LONG);
        let mut slot = Some(admit(&admission, "ann", 1).await.unwrap());
        let mut waiting = Vec::new();
        for (user, weight) in [("ann", 1), ("bob", 3)] {
            for _ in 0..10 {
                let mut query = Box::pin(admit(&admission, user, weight));
                assert!(poll!(&mut query).is_pending());
                waiting.push((user, query));
            }
        }
        let mut order = String::new();
        for _ in 0..8 {
            drop(slot.take());
            for (at, (user, query)) in waiting.iter_mut().enumerate() {
                if let Poll::Ready(admitted) = poll!(query) {
                    slot = Some(admitted.unwrap());
                    order.push_str(user);
                    drop(waiting.remove(at));
                    break;
                }
            }
        }
        assert_eq!((order.matches("ann").count(), order.matches("bob").count()), (2, 6), "{order}");
    }
}
