//! How many queries run at once: a number of slots, and a queue with a bound.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::queries::error::{ErrorKind, QueryError};
use crate::queries::fair_queue::{FairQueue, QueueEntry};

/// Slots for running queries. Users get the next ones in proportion to their weights, each user's queries in their
/// order.
#[derive(Debug)]
pub(super) struct Admission {
    slots: Arc<Slots>,
    running_max: usize,
    waiting_max: usize,
    wait_max: Duration,
}

#[derive(Debug)]
struct Slots(Mutex<State>);

/// While a query waits, no slot is free.
#[derive(Debug)]
struct State {
    free: usize,
    waiting: FairQueue<oneshot::Sender<Slot>>,
    is_closed: bool,
}

impl Slots {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run; given back when dropped.
#[derive(Debug)]
pub(super) struct Slot(Option<Arc<Slots>>);

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(slots) = self.0.take() else { return };
        let mut state = slots.state();
        while let Some(next) = state.waiting.pop() {
            match next.send(Self(Some(Arc::clone(&slots)))) {
                Ok(()) => return,
                // It is about to leave. Dropped as it is, the slot would come here again, under the lock.
                Err(mut slot) => drop(slot.0.take()),
            }
        }
        state.free += 1;
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
    pub(super) fn new(running_max: usize, waiting_max: usize, wait_max: Duration) -> Self {
        let state = State { free: running_max, waiting: FairQueue::new(), is_closed: false };
        Self { slots: Arc::new(Slots(Mutex::new(state))), running_max, waiting_max, wait_max }
    }

    /// Waits for a slot for a query of a user. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// If the queue is full and nobody has more queries in it, or another user needs the place later, no slot comes free in time, or the server stops.
    pub(super) async fn admit(&self, user: &str, weight: u32) -> Result<Slot, QueryError> {
        let (sender, receiver) = oneshot::channel();
        let (_place, refused) = {
            let mut state = self.slots.state();
            if state.is_closed {
                return Err(stopping());
            }
            if state.free > 0 {
                state.free -= 1;
                return Ok(Slot(Some(Arc::clone(&self.slots))));
            }
            // Nobody keeps others out by filling the queue.
            let is_full = state.waiting.len() >= self.waiting_max;
            let refused = if is_full { state.waiting.make_place(user) } else { None };
            if is_full && refused.is_none() {
                return Err(self.full());
            }
            let entry = state.waiting.push(user, weight, sender);
            (Place { slots: &self.slots, entry }, refused)
        };
        drop(refused); // Outside of the lock: it wakes a task.
        match tokio::time::timeout(self.wait_max, receiver).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) if self.slots.state().is_closed => Err(stopping()),
            Ok(Err(_)) => Err(self.full()),
            Err(_) => Err(QueryError::new(
                ErrorKind::Busy,
                format!(
                    "no query ended within {:?}, so this one did not start; try again later, or raise `wait_max`",
                    self.wait_max
                ),
            )),
        }
    }

    fn full(&self) -> QueryError {
        QueryError::new(
            ErrorKind::Busy,
            format!(
                "{} queries run and {} wait, which is all that this server admits; try again later, or raise \
                 `queries_running` or `queries_waiting`",
                self.running_max, self.waiting_max
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

    /// Queries that wait.
    pub(super) fn waiting(&self) -> usize {
        self.slots.state().waiting.len()
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

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn who_fills_the_queue_gives_up_places_to_others() {
        let admission = Admission::new(1, 3, LONG);
        let running = admission.admit("ann", 1).await.unwrap();
        let mut of_ann: Vec<_> = (0..3).map(|_| Box::pin(admission.admit("ann", 1))).collect();
        for waiting in &mut of_ann {
            assert!(poll!(waiting).is_pending());
        }
        let mut of_bob = Box::pin(admission.admit("bob", 1));
        assert!(poll!(&mut of_bob).is_pending());
        let Poll::Ready(Err(refused)) = poll!(&mut of_ann[2]) else { panic!("Ann's newest stays") };
        assert_eq!(refused.kind, ErrorKind::Busy);
        // Bob has one and Ann two: now each refusal is the newcomer's.
        for user in ["ann", "bob"] {
            assert_eq!(admission.admit(user, 1).await.unwrap_err().kind, ErrorKind::Busy, "{user}");
        }
        drop(running);
        let first = of_ann.remove(0).await.unwrap();
        drop(first);
        of_bob.await.unwrap();
    }

    #[tokio::test]
    async fn queries_beyond_the_slots_wait_in_their_order_and_beyond_the_queue_are_refused() {
        let admission = Admission::new(1, 2, LONG);
        let first = admission.admit("ann", 1).await.unwrap();
        let mut second = pin!(admission.admit("ann", 1));
        let mut third = pin!(admission.admit("ann", 1));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        assert_eq!(admission.admit("ann", 1).await.unwrap_err().kind, ErrorKind::Busy);
        drop(first);
        let second = second.await.unwrap();
        assert!(poll!(&mut third).is_pending());
        drop(second);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn who_leaves_the_queue_makes_place() {
        let admission = Admission::new(1, 1, LONG);
        let _first = admission.admit("ann", 1).await.unwrap();
        {
            let mut second = pin!(admission.admit("ann", 1));
            assert!(poll!(&mut second).is_pending());
            assert_eq!(admission.waiting(), 1);
        }
        assert_eq!(admission.waiting(), 0);
        let mut third = pin!(admission.admit("ann", 1));
        assert!(poll!(&mut third).is_pending());
    }

    #[tokio::test]
    async fn waiting_ends_in_time_and_when_the_server_stops() {
        let admission = Admission::new(1, 2, Duration::ZERO);
        let _first = admission.admit("ann", 1).await.unwrap();
        assert_eq!(admission.admit("ann", 1).await.unwrap_err().kind, ErrorKind::Busy);
        let admission = Admission::new(1, 2, LONG);
        let _first = admission.admit("ann", 1).await.unwrap();
        let mut second = pin!(admission.admit("ann", 1));
        assert!(poll!(&mut second).is_pending());
        admission.close();
        assert_eq!(second.await.unwrap_err().kind, ErrorKind::Stopping);
        assert_eq!(admission.admit("ann", 1).await.unwrap_err().kind, ErrorKind::Stopping);
    }

    #[tokio::test]
    async fn who_gives_up_with_a_slot_gives_it_back() {
        let admission = Admission::new(1, 2, LONG);
        let first = admission.admit("ann", 1).await.unwrap();
        {
            let mut second = pin!(admission.admit("ann", 1));
            assert!(poll!(&mut second).is_pending());
            drop(first);
        }
        admission.admit("ann", 1).await.unwrap();
    }

    #[tokio::test]
    async fn users_get_slots_in_proportion_to_their_weights() {
        let admission = Admission::new(1, 100, LONG);
        let mut slot = Some(admission.admit("ann", 1).await.unwrap());
        let mut waiting = Vec::new();
        for (user, weight) in [("ann", 1), ("bob", 3)] {
            for _ in 0..10 {
                let mut query = Box::pin(admission.admit(user, weight));
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
