//! Values on their way from a task to Python. The task fills a short queue. Whoever takes from it only waits for that, so it may
//! be any thread, with the interpreter or without, or an event loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use pyo3::prelude::*;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::process::{self, STEP, Task, lock};

/// The places of the queue. A value takes one for each [`PLACE_BYTES`], and at most half of them. With few places for small
/// values, each would cost a change of threads.
const PLACES: usize = 16;
const PLACE_BYTES: usize = 1 << 20;

/// A value, or the end of all.
type Queued<T> = Option<(T, OwnedSemaphorePermit)>;

/// The callback of an event loop that waits.
type Waiting = Arc<Mutex<Option<Py<PyAny>>>>;

/// What comes of a task.
pub(crate) enum Received<T> {
    Value(T),
    /// The task has sent all values.
    End,
    /// The task was cancelled, or has panicked.
    Lost,
}

/// Values that a task sends. It is cancelled when this is dropped.
#[derive(Debug)]
pub(crate) struct Incoming<T> {
    queue: Mutex<Receiver<Queued<T>>>,
    has_ended: AtomicBool,
    waiting: Waiting,
    task: Task,
}

/// The end of the task.
pub(crate) struct Outgoing<T> {
    /// `None` when this is dropped.
    sender: Option<Sender<Queued<T>>>,
    places: Arc<Semaphore>,
    waiting: Waiting,
}

impl<T: Send + 'static> Incoming<T> {
    /// Starts a task, which has sent all values when it ends.
    pub(crate) fn start<F>(run: impl FnOnce(Arc<Outgoing<T>>) -> F) -> PyResult<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, queue) = mpsc::channel();
        let waiting = Waiting::default();
        let outgoing = Arc::new(Outgoing {
            sender: Some(sender),
            places: Arc::new(Semaphore::new(PLACES)),
            waiting: Arc::clone(&waiting),
        });
        let sent = run(Arc::clone(&outgoing));
        let task = process::spawn(async move {
            sent.await;
            outgoing.end();
        })?;
        Ok(Self { queue: Mutex::new(queue), has_ended: AtomicBool::new(false), waiting, task })
    }

    /// The next value, for a thread with the interpreter. Ctrl-C raises `KeyboardInterrupt`.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Received<T>> {
        process::receive(py, &self.queue).map(|received| self.received(received))
    }

    /// The next value if it comes soon, for a thread without the interpreter.
    pub(crate) fn next_soon(&self) -> Poll<Received<T>> {
        match lock(&self.queue).recv_timeout(STEP) {
            Ok(queued) => Poll::Ready(self.received(Some(queued))),
            Err(RecvTimeoutError::Disconnected) => Poll::Ready(self.received(None)),
            Err(RecvTimeoutError::Timeout) => Poll::Pending,
        }
    }

    /// The next value if it is there, for an event loop. If it is not, `callback` is called when it may be.
    pub(crate) fn poll(&self, callback: Py<PyAny>) -> Poll<Received<T>> {
        // This comes first, or a value that comes now would wake nobody.
        *lock(&self.waiting) = Some(callback);
        match lock(&self.queue).try_recv() {
            Ok(queued) => Poll::Ready(self.received(Some(queued))),
            Err(TryRecvError::Disconnected) => Poll::Ready(self.received(None)),
            Err(TryRecvError::Empty) => Poll::Pending,
        }
    }

    /// Cancels the task.
    pub(crate) fn cancel(&self) {
        self.task.cancel();
    }

    /// What was received: `None` once the task sends nothing any more.
    fn received(&self, received: Option<Queued<T>>) -> Received<T> {
        match received {
            Some(Some((value, _))) => return Received::Value(value),
            Some(None) => self.has_ended.store(true, Ordering::Relaxed),
            None => {}
        }
        if self.has_ended.load(Ordering::Relaxed) { Received::End } else { Received::Lost }
    }
}

impl<T> Outgoing<T> {
    /// Sends a value of some bytes when there is a place for it. Returns whether anybody may take it.
    pub(crate) async fn send(&self, value: T, bytes: usize) -> bool {
        let places = bytes.div_ceil(PLACE_BYTES).clamp(1, PLACES / 2) as u32;
        let acquired = Arc::clone(&self.places).acquire_many_owned(places).await;
        let Ok(place) = acquired else { return false };
        let is_sent =
            self.sender.as_ref().is_some_and(|sender| sender.send(Some((value, place))).is_ok());
        self.wake();
        is_sent
    }

    fn end(&self) {
        let _nobody_waits = self.sender.as_ref().map(|sender| sender.send(None));
    }

    fn wake(&self) {
        if let Some(callback) = lock(&self.waiting).take() {
            process::call_back(callback);
        }
    }
}

impl<T> Drop for Outgoing<T> {
    fn drop(&mut self) {
        self.sender = None;
        self.wake();
    }
}
