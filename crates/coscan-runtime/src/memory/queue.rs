//! Requests for memory to decode that cannot be met yet.
//!
//! They are met in the order in which they came. Later ones overtake if there is enough for them but not for the first:
//! their queries may have to go on before there can be enough. But once a request has waited for half of the time that it
//! may wait, nothing behind it is met: returned memory adds up until it is enough.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::reservation::Reservation;
use crate::destructor::InDestructor;

/// The purpose of requested memory. Workers that already hold memory come first: others may wait for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// For the next batch of a chunk that is open.
    Working,
    /// To open a chunk. The worker holds nothing.
    Opening,
}

impl Stage {
    const ALL: [Self; 2] = [Self::Working, Self::Opening];
    const LAST: Self = Self::Opening;
}

/// By stage, then in order of arrival.
type Position = (Stage, u64);

/// All requests that wait.
#[derive(Debug)]
pub(crate) struct MemoryQueue {
    state: Mutex<State>,
    /// A request that has waited for so long is overtaken no more.
    overtaking_time: Duration,
    /// Notified when a request enters the empty queue.
    entered: Notify,
}

#[derive(Debug, Default)]
struct State {
    requests: BTreeMap<Position, Request>,
    next: u64,
}

#[derive(Debug)]
struct Request {
    bytes: u64,
    since: Instant,
    grant: oneshot::Sender<Reservation>,
}

impl State {
    /// When the oldest request of this stage or one before it was made.
    fn oldest(&self, stage: Stage) -> Option<Instant> {
        let stages = Stage::ALL.into_iter().filter(|&of_request| of_request <= stage);
        // Requests of a stage are in the order in which they came.
        let first = |stage| self.requests.range((stage, 0)..=(stage, u64::MAX)).next();
        stages.filter_map(first).map(|(_, first)| first.since).min()
    }
}

impl MemoryQueue {
    /// An empty queue. A request is given up after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { state: Mutex::default(), overtaking_time: timeout / 2, entered: Notify::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    /// Whether a request has waited for so long.
    pub(crate) fn has_waited(&self, time: Duration) -> bool {
        let oldest = self.lock().oldest(Stage::LAST);
        oldest.is_some_and(|oldest| oldest.elapsed() >= time)
    }

    /// Waits until a request has waited for so long. Timers are on `runtime`.
    pub(crate) async fn until_waited(&self, time: Duration, runtime: &Handle) {
        loop {
            // Before the look: a request may enter in between.
            let mut entered = pin!(self.entered.notified());
            entered.as_mut().enable();
            let oldest = self.lock().oldest(Stage::LAST);
            match oldest {
                None => entered.await,
                Some(oldest) if oldest.elapsed() >= time => return,
                // It may be met meanwhile, and others wait.
                Some(oldest) => {
                    let sleep = {
                        let _runtime = runtime.enter();
                        tokio::time::sleep_until(oldest + time)
                    };
                    sleep.await;
                }
            }
        }
    }

    /// Whether a request has waited for so long that none of this stage may overtake it.
    pub(crate) fn is_closed_to(&self, stage: Stage) -> bool {
        let oldest = self.lock().oldest(stage);
        oldest.is_some_and(|oldest| oldest.elapsed() >= self.overtaking_time)
    }

    /// Queues a request for `bytes` until the result is dropped.
    pub(crate) fn enter(&self, stage: Stage, bytes: u64) -> Queued<'_> {
        let (grant, granted) = oneshot::channel();
        let position = {
            let mut state = self.lock();
            let position = (stage, state.next);
            state.next += 1;
            state.requests.insert(position, Request { bytes, since: Instant::now(), grant });
            position
        };
        self.entered.notify_waiters();
        Queued { queue: self, position, granted }
    }

    /// Meets requests as far as `reserve` finds memory. Only the pump calls it.
    pub(crate) fn serve(&self, reserve: impl Fn(u64) -> Option<Reservation>) {
        let mut refused_bytes = u64::MAX;
        let mut next = self.first_from((Stage::Working, 0));
        while let Some((position, bytes, since)) = next {
            // If there is not enough for these bytes, there is not enough for more.
            let memory = if bytes < refused_bytes { reserve(bytes) } else { None };
            if let Some(memory) = memory {
                let request = self.lock().requests.remove(&position);
                if let Some(request) = request {
                    // If the worker is gone, the memory returns by itself.
                    let _ = request.grant.send(memory);
                }
            } else {
                refused_bytes = refused_bytes.min(bytes);
                if since.elapsed() >= self.overtaking_time {
                    return;
                }
            }
            next = self.first_from((position.0, position.1 + 1));
        }
    }

    /// Gives up all requests, because nobody will meet them.
    pub(crate) fn close(&self) {
        let requests = std::mem::take(&mut self.lock().requests);
        drop(requests); // Not under the lock: those who wait are woken.
    }

    /// The first request at this position or behind it.
    fn first_from(&self, position: Position) -> Option<(Position, u64, Instant)> {
        let state = self.lock();
        let next = state.requests.range(position..).next();
        next.map(|(&position, request)| (position, request.bytes, request.since))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in the queue.
#[derive(Debug)]
pub(crate) struct Queued<'a> {
    queue: &'a MemoryQueue,
    position: Position,
    /// Receives the memory.
    pub(crate) granted: oneshot::Receiver<Reservation>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        self.queue.lock().requests.remove(&self.position);
    }
}
