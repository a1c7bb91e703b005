//! A running query as one of those that have the same fragments.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use coscan_runtime::BufferManager;
use coscan_runtime::core::{ChunkIndex, ComputationId};
use datafusion::arrow::datatypes::SchemaRef;

use super::computations::Computations;
use super::inbox::{Inbox, PublishedState};
use super::state::{ChunkState, Collected, NotPublished};
use super::store::{Entry, ResultStore, TOO_LARGE_MAX};

/// Chunks that are looked up at a time: the bound on the time that this holds a lock.
const LOOKUPS_MAX: usize = 1024;

/// What the executions of a plan share with other queries.
#[derive(Clone, Debug)]
pub(crate) struct ResultSharing {
    pub(crate) manager: BufferManager,
    pub(crate) computations: Arc<Computations>,
    /// Whether states stay for later queries.
    pub(crate) keeps: bool,
}

/// A running query. It is told of the states of others as long as it exists.
#[derive(Debug)]
pub(crate) struct Subscription {
    sharing: ResultSharing,
    store: Arc<ResultStore>,
    inbox: Arc<Inbox>,
    /// The entries of its fragments.
    entries: Vec<Arc<Entry>>,
    /// The chunks of the query whose states were too large.
    too_large: AtomicUsize,
}

impl Subscription {
    /// Subscribes to the states of the fragments of a query, whose scan has so many workers.
    pub(crate) fn new(sharing: &ResultSharing, workers: usize) -> Self {
        let store = ResultStore::of(&sharing.manager);
        let inbox = Arc::new(Inbox::new(workers));
        let fragments = sharing.computations.fragments.iter();
        let entries: Vec<_> = fragments.map(|fragment| store.entry(fragment)).collect();
        entries.iter().for_each(|entry| entry.subscribe(&inbox, sharing.keeps));
        Self { sharing: sharing.clone(), store, inbox, entries, too_large: AtomicUsize::new(0) }
    }

    /// The number by which the scheduler knows what the query computes of most chunks.
    pub(crate) fn computation(&self) -> Option<ComputationId> {
        self.sharing.computations.most_common().map(|fragment| self.entries[fragment].id)
    }

    /// Splits chunks into those with a published state and the others, which are in ascending order.
    pub(crate) fn split(
        &self,
        chunks: Vec<ChunkIndex>,
    ) -> (Vec<(ChunkIndex, Arc<ChunkState>)>, Vec<ChunkIndex>) {
        let mut of_fragments = vec![Vec::new(); self.entries.len()];
        let mut others = Vec::new();
        for chunk in chunks {
            match self.sharing.computations.of_chunk(chunk) {
                Some((fragment, key)) => of_fragments[fragment].push((chunk, key)),
                None => others.push(chunk),
            }
        }
        let mut published = Vec::new();
        for (entry, chunks) in self.entries.iter().zip(&of_fragments) {
            for chunks in chunks.chunks(LOOKUPS_MAX) {
                let states = entry.find(chunks.iter().map(|(_, key)| *key));
                for (&(chunk, _), state) in chunks.iter().zip(states) {
                    match state {
                        Some(state) => published.push((chunk, state)),
                        None => others.push(chunk),
                    }
                }
            }
        }
        others.sort_unstable();
        (published, others)
    }

    /// The chunks of the query whose states others have published since the last call.
    pub(crate) fn newly_published(
        &self,
    ) -> impl Iterator<Item = (ChunkIndex, Arc<ChunkState>)> + '_ {
        let states = self.inbox.take().into_iter();
        states.filter_map(|PublishedState { computation, chunk, state }| {
            let fragment = self.entries.iter().position(|entry| entry.id == computation)?;
            Some((self.sharing.computations.chunk(fragment, chunk)?, state))
        })
    }

    /// Sets the waker of a worker, which is woken when others have published states.
    pub(crate) fn register_waker(&self, worker: usize, waker: &Waker) {
        self.inbox.register_waker(worker, waker);
    }

    /// Removes the waker of a worker, which does not wait.
    pub(crate) fn remove_waker(&self, worker: usize) {
        self.inbox.remove_waker(worker);
    }

    /// Wakes a worker that waits.
    pub(crate) fn wake_one(&self) {
        self.inbox.wake_one();
    }

    /// Notes that the state of a chunk was taken from another query.
    pub(crate) fn count_taken(&self) {
        self.store.counts.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it is worth while to compute the state of a chunk apart.
    pub(crate) fn is_wanted(&self, chunk: ChunkIndex) -> bool {
        if self.too_large.load(Ordering::Relaxed) >= TOO_LARGE_MAX {
            return false;
        }
        let place = self.sharing.computations.of_chunk(chunk);
        place.is_some_and(|(fragment, key)| self.entries[fragment].is_wanted(key))
    }

    /// Publishes the state of a chunk of so many rows, if it is small and there is memory for it. Returns whether it was published.
    pub(crate) fn publish(
        &self,
        chunk: ChunkIndex,
        rows: u64,
        schema: &SchemaRef,
        collected: &Collected,
    ) -> bool {
        let Some((fragment, key)) = self.sharing.computations.of_chunk(chunk) else { return false };
        let (entry, manager) = (&self.entries[fragment], &self.sharing.manager);
        let state = match collected {
            Collected::State(batches) => {
                ChunkState::new(manager, schema, batches, (rows, key.changes_bytes()))
            }
            Collected::Not(reason) => Err(*reason),
        };
        let counts = &self.store.counts;
        match state {
            Ok(state) => {
                entry.publish(manager, key, &Arc::new(state), &self.inbox);
                counts.published.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(reason) => {
                if reason == NotPublished::TooLarge {
                    self.too_large.fetch_add(1, Ordering::Relaxed);
                    entry.count_too_large(key);
                }
                counts.refused.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.entries.iter().for_each(|entry| entry.unsubscribe(&self.inbox));
    }
}
