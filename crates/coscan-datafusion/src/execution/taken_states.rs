//! The states of chunks that a scan takes from other queries, so that its workers need not read these chunks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use coscan_runtime::Scan;
use coscan_runtime::core::ChunkIndex;

use crate::shared_results::{ChunkState, ResultSharing, Subscription};

/// The states of the chunks of a scan. A chunk is in it, or needed by the scan, or was given to a worker by either.
#[derive(Debug)]
pub(crate) struct TakenStates {
    subscription: Subscription,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// States that were not given to a worker yet.
    waiting: VecDeque<(ChunkIndex, Arc<ChunkState>)>,
    /// The chunks whose states were given, each with its worker.
    given: Vec<(ChunkIndex, usize)>,
    /// Whether no more are given.
    is_closed: bool,
}

impl TakenStates {
    /// The states that a scan with so many workers takes.
    pub(crate) fn new(sharing: &ResultSharing, workers: usize) -> Self {
        let subscription = Subscription::new(sharing, workers);
        Self { subscription, taken: Mutex::default() }
    }

    pub(crate) fn subscription(&self) -> &Subscription {
        &self.subscription
    }

    /// Whether a state waits for a worker.
    pub(crate) fn has_any(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Takes the states that are published of some chunks. Returns the chunks that are to be read.
    pub(crate) fn take_published(&self, chunks: Vec<ChunkIndex>) -> Vec<ChunkIndex> {
        let (published, others) = self.subscription.split(chunks);
        self.lock().waiting.extend(published);
        others
    }

    /// Gives a state to a worker of a scan. Chunks of which others have published states meanwhile are no longer needed by the
    /// scan, unless they were handed out. If there is no state, the worker is woken when there may be one.
    pub(crate) fn take(
        &self,
        scan: Option<&Arc<Scan>>,
        worker: usize,
        waker: &Waker,
    ) -> Option<Arc<ChunkState>> {
        self.subscription.register_waker(worker, waker);
        let mut taken = self.lock();
        let mut published: HashMap<_, _> = self.subscription.newly_published().collect();
        if let Some(scan) = scan.filter(|_| !taken.is_closed && !published.is_empty()) {
            // Under the lock: whoever closes the scan sees a chunk in either of both.
            let chunks: Vec<_> = published.keys().copied().collect();
            let pruned = scan.prune(&chunks).into_iter();
            taken.waiting.extend(pruned.filter_map(|chunk| published.remove_entry(&chunk)));
        }
        let (chunk, state) = taken.waiting.pop_front()?;
        taken.given.push((chunk, worker));
        self.subscription.count_taken();
        Some(state)
    }

    /// Drops states that were not given.
    pub(crate) fn give_up(&self, is_selected: impl Fn(ChunkIndex) -> bool) {
        self.lock().waiting.retain(|(chunk, _)| !is_selected(*chunk));
    }

    /// Gives no more states. Adds the chunks of those that were given to the ones that `close` returns.
    pub(crate) fn close(
        &self,
        close: impl FnOnce() -> Vec<(ChunkIndex, usize)>,
    ) -> Vec<(ChunkIndex, usize)> {
        let mut taken = self.lock();
        taken.is_closed = true;
        taken.waiting.clear();
        let mut handed = close();
        handed.extend(&taken.given);
        handed
    }

    /// The chunks that were handed out, with those of the states that were given.
    pub(crate) fn with_given(
        &self,
        handed: impl FnOnce() -> Vec<(ChunkIndex, usize)>,
    ) -> Vec<(ChunkIndex, usize)> {
        let taken = self.lock();
        let mut handed = handed();
        handed.extend(&taken.given);
        handed
    }

    /// As [`Self::with_given`], if all chunks were handed out and all states given.
    pub(crate) fn with_all_given(
        &self,
        handed: impl FnOnce() -> Option<Vec<(ChunkIndex, usize)>>,
    ) -> Option<Vec<(ChunkIndex, usize)>> {
        let taken = self.lock();
        if !taken.waiting.is_empty() {
            return None;
        }
        let mut handed = handed()?;
        handed.extend(&taken.given);
        Some(handed)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
