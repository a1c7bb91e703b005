//! The states that others publish while a query runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use coscan_runtime::core::ComputationId;
use futures::task::AtomicWaker;

use super::computations::ChunkKey;
use super::state::ChunkState;

/// A state that was published.
#[derive(Debug)]
pub(super) struct PublishedState {
    pub(super) computation: ComputationId,
    pub(super) chunk: ChunkKey,
    pub(super) state: Arc<ChunkState>,
}

/// The states that were published since a query last looked.
#[derive(Debug)]
pub(super) struct Inbox {
    published: Mutex<Vec<PublishedState>>,
    /// A waker for each worker of its scan.
    wakers: Vec<AtomicWaker>,
}

impl Inbox {
    pub(super) fn new(workers: usize) -> Self {
        let wakers = std::iter::repeat_with(AtomicWaker::new).take(workers).collect();
        Self { published: Mutex::default(), wakers }
    }

    /// Puts a state in. The first one wakes a worker that waits, which takes all that have come until then.
    pub(super) fn put(&self, state: PublishedState) {
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        published.push(state);
        let is_first = published.len() == 1;
        drop(published);
        if is_first {
            self.wake_one();
        }
    }

    /// Wakes a worker that waits.
    pub(super) fn wake_one(&self) {
        if let Some(waker) = self.wakers.iter().find_map(AtomicWaker::take) {
            waker.wake();
        }
    }

    /// Takes all states out.
    pub(super) fn take(&self) -> Vec<PublishedState> {
        std::mem::take(&mut *self.published.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the waker of a worker, which may wait from now on.
    pub(super) fn register_waker(&self, worker: usize, waker: &Waker) {
        if let Some(kept) = self.wakers.get(worker) {
            kept.register(waker);
        }
    }

    /// Removes the waker of a worker, which does not wait.
    pub(super) fn remove_waker(&self, worker: usize) {
        self.wakers.get(worker).map(AtomicWaker::take);
    }
}
