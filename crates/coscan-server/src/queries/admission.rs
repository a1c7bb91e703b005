//! How many queries run at once: a number of slots, and a queue with a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::queries::error::{ErrorKind, QueryError};

/// Slots for running queries. Who waits longest gets the next one.
#[derive(Debug)]
pub(super) struct Admission {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    running_max: usize,
    waiting_max: usize,
    wait_max: Duration,
}

/// The right to run; given back when dropped.
#[derive(Debug)]
pub(super) struct Slot(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

/// One place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(super) fn new(running_max: usize, waiting_max: usize, wait_max: Duration) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(running_max)),
            waiting: AtomicUsize::new(0),
            running_max,
            waiting_max,
            wait_max,
        }
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// If the queue is full, no slot comes free in time, or the server stops.
    pub(super) async fn admit(&self) -> Result<Slot, QueryError> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(Slot(permit));
        }
        let place = self.queue()?;
        let acquired = Arc::clone(&self.slots).acquire_owned();
        let result = tokio::time::timeout(self.wait_max, acquired).await;
        drop(place);
        match result {
            Ok(Ok(permit)) => Ok(Slot(permit)),
            Ok(Err(_)) => Err(stopping()),
            Err(_) => Err(QueryError::new(
                ErrorKind::Busy,
                format!(
                    "no query ended within {:?}, so this one did not start; try again later, or raise `wait_max`",
                    self.wait_max
                ),
            )),
        }
    }

    fn queue(&self) -> Result<Place<'_>, QueryError> {
        if self.slots.is_closed() {
            return Err(stopping());
        }
        let place = |waiting| if waiting < self.waiting_max { Some(waiting + 1) } else { None };
        match self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, place) {
            Ok(_) => Ok(Place(&self.waiting)),
            Err(waiting) => Err(QueryError::new(
                ErrorKind::Busy,
                format!(
                    "{} queries run and {waiting} wait, which is all that this server admits; try again later, or \
                     raise `queries_running` or `queries_waiting`",
                    self.running_max
                ),
            )),
        }
    }

    /// Admits no more queries; those that wait are refused.
    pub(super) fn close(&self) {
        self.slots.close();
    }

    /// Queries that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn stopping() -> QueryError {
    QueryError::new(ErrorKind::Stopping, "the server is about to stop; connect again later")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;

    use futures::poll;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn queries_beyond_the_slots_wait_in_their_order_and_beyond_the_queue_are_refused() {
        let admission = Admission::new(1, 2, LONG);
        let first = admission.admit().await.unwrap();
        let mut second = pin!(admission.admit());
        let mut third = pin!(admission.admit());
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        assert_eq!(admission.admit().await.unwrap_err().kind, ErrorKind::Busy);
        drop(first);
        let second = second.await.unwrap();
        assert!(poll!(&mut third).is_pending());
        drop(second);
        third.await.unwrap();
    }

    #[tokio::test]
    async fn who_leaves_the_queue_makes_place() {
        let admission = Admission::new(1, 1, LONG);
        let _first = admission.admit().await.unwrap();
        {
            let mut second = pin!(admission.admit());
            assert!(poll!(&mut second).is_pending());
            assert_eq!(admission.waiting(), 1);
        }
        assert_eq!(admission.waiting(), 0);
        let mut third = pin!(admission.admit());
        assert!(poll!(&mut third).is_pending());
    }

    #[tokio::test]
    async fn waiting_ends_in_time_and_when_the_server_stops() {
        let admission = Admission::new(1, 2, Duration::ZERO);
        let _first = admission.admit().await.unwrap();
        assert_eq!(admission.admit().await.unwrap_err().kind, ErrorKind::Busy);
        let admission = Admission::new(1, 2, LONG);
        let _first = admission.admit().await.unwrap();
        let mut second = pin!(admission.admit());
        assert!(poll!(&mut second).is_pending());
        admission.close();
        assert_eq!(second.await.unwrap_err().kind, ErrorKind::Stopping);
        assert_eq!(admission.admit().await.unwrap_err().kind, ErrorKind::Stopping);
    }
}
