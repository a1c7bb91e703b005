//! Requests for memory to decode that cannot be met yet.
//!
//! They are met in the order in which they came. Later ones overtake if there is enough for them but not for the first:
//! their queries may have to go on before there can be enough. But once a request has waited for half of the time that it
//! may wait, nothing behind it is met: returned memory adds up until it is enough.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::reservation::Reservation;

/// The purpose of requested memory. Workers that already hold memory come first: others may wait for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// For the next batch of a chunk that is open.
    Working,
    /// To open a chunk. The worker holds nothing.
    Opening,
}

/// By stage, then in order of arrival.
type Position = (Stage, u64);

/// All requests that wait.
#[derive(Debug)]
pub(crate) struct MemoryQueue {
    state: Mutex<State>,
    /// A request that has waited for so long is overtaken no more.
    overtaking_time: Duration,
    /// Notified at intervals while a request waits.
    waiting: Notify,
}

#[derive(Debug, Default)]
struct State {
    requests: BTreeMap<Position, Request>,
    next: u64,
    /// A thread is serving the queue.
    is_served: bool,
    /// Memory was returned since it began to.
    serve_again: bool,
    /// A task looks at the queue at intervals.
    is_watched: bool,
}

#[derive(Debug)]
struct Request {
    bytes: u64,
    since: Instant,
    grant: oneshot::Sender<Reservation>,
}

impl State {
    /// Whether a request of this stage or one before it has waited for so long.
    fn has_waited(&self, time: Duration, stage: Stage) -> bool {
        let mut stages =
            [Stage::Working, Stage::Opening].into_iter().filter(|&of_request| of_request <= stage);
        stages.any(|stage| {
            // Requests of a stage are in the order in which they came.
            let first = self.requests.range((stage, 0)..=(stage, u64::MAX)).next();
            first.is_some_and(|(_, first)| first.since.elapsed() >= time)
        })
    }
}

impl MemoryQueue {
    /// An empty queue. A request is given up after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { state: Mutex::default(), overtaking_time: timeout / 2, waiting: Notify::new() }
    }

    /// Whether a request has waited for so long.
    pub(crate) fn has_waited(&self, time: Duration) -> bool {
        self.lock().has_waited(time, Stage::Opening)
    }

    /// Waits until a request has waited for so long, at most until the next time that the watch looks at it.
    pub(crate) async fn until_waited(&self, time: Duration) {
        loop {
            // Before the look: the watch may find the request in between.
            let mut noticed = pin!(self.waiting.notified());
            noticed.as_mut().enable();
            if self.has_waited(time) {
                return;
            }
            noticed.await;
        }
    }

    /// Whether a request has waited for so long that none of this stage may overtake it.
    pub(crate) fn is_closed_to(&self, stage: Stage) -> bool {
        self.lock().has_waited(self.overtaking_time, stage)
    }

    /// Queues a request for `bytes` until the result is dropped.
    pub(crate) fn enter(&self, stage: Stage, bytes: u64) -> Queued<'_> {
        let (grant, granted) = oneshot::channel();
        let mut state = self.lock();
        let position = (stage, state.next);
        state.next += 1;
        state.requests.insert(position, Request { bytes, since: Instant::now(), grant });
        Queued { queue: self, position, granted }
    }

    /// True if the queue is not watched yet: from now on the caller watches it.
    pub(crate) fn begin_watch(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_watched, true)
    }

    /// True if the queue is empty: then the watch has ended. If not, those who wait for requests that wait look again.
    pub(crate) fn end_watch(&self) -> bool {
        let is_empty = {
            let mut state = self.lock();
            state.is_watched = !state.requests.is_empty();
            !state.is_watched
        };
        if !is_empty {
            self.waiting.notify_waiters();
        }
        is_empty
    }

    /// Meets requests as far as `reserve` finds memory. One thread serves at a time; calls meanwhile make it start again.
    pub(crate) fn serve(&self, reserve: impl Fn(u64) -> Option<Reservation>) {
        {
            let mut state = self.lock();
            if state.requests.is_empty() {
                return;
            }
            if std::mem::replace(&mut state.is_served, true) {
                state.serve_again = true;
                return;
            }
        }
        let serving = Serving(self);
        loop {
            self.serve_once(&reserve);
            let mut state = self.lock();
            if !std::mem::take(&mut state.serve_again) {
                state.is_served = false;
                break;
            }
        }
        std::mem::forget(serving);
    }

    fn serve_once(&self, reserve: &impl Fn(u64) -> Option<Reservation>) {
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

/// Lets other threads serve the queue if finding memory panics.
struct Serving<'a>(&'a MemoryQueue);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.lock().is_served = false;
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
        self.queue.lock().requests.remove(&self.position);
    }
}
