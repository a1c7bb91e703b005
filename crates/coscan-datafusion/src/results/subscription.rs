//! A running query as one of those that have the same fragments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use coscan_runtime::BufferManager;
use coscan_runtime::core::{ChunkIndex, ComputationId};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use futures::task::AtomicWaker;

use super::computations::{ChunkKey, Computations};
use super::state::{ChunkState, NotPublished};
use super::store::ResultStore;

/// Chunks that are looked up at a time: the bound on the time that this holds the lock of the store.
const LOOKUPS_MAX: usize = 1024;

/// A state that was published.
#[derive(Debug)]
pub(super) struct News {
    pub(super) fragment: ComputationId,
    pub(super) chunk: ChunkKey,
    pub(super) state: Arc<ChunkState>,
}

/// The states that others have published since a query last looked.
#[derive(Debug)]
pub(super) struct Inbox {
    number: u64,
    news: Mutex<Vec<News>>,
    /// A waker for each worker of its scan.
    wakers: Vec<AtomicWaker>,
}

impl Inbox {
    fn new(workers: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let wakers = std::iter::repeat_with(AtomicWaker::new).take(workers).collect();
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), news: Mutex::default(), wakers }
    }

    /// The number that no other has.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn put(&self, news: News) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(news);
        self.wakers.iter().for_each(AtomicWaker::wake);
    }

    fn take(&self) -> Vec<News> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

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
    /// The ids of its fragments.
    ids: Vec<ComputationId>,
}

impl Subscription {
    /// Subscribes to the states of the fragments of a query, whose scan has so many workers.
    pub(crate) fn new(sharing: &ResultSharing, workers: usize) -> Self {
        let store = ResultStore::of(&sharing.manager);
        let inbox = Arc::new(Inbox::new(workers));
        let fragments = sharing.computations.fragments.iter();
        let ids = fragments.map(|fragment| store.join(fragment, &inbox, sharing.keeps)).collect();
        Self { sharing: sharing.clone(), store, inbox, ids }
    }

    /// The number by which the scheduler knows what the query computes of most chunks.
    pub(crate) fn computation(&self) -> Option<ComputationId> {
        self.sharing.computations.most_common().map(|fragment| self.ids[fragment])
    }

    /// Splits chunks into those with a published state and the others, which are in ascending order.
    pub(crate) fn split(
        &self,
        chunks: Vec<ChunkIndex>,
    ) -> (Vec<(ChunkIndex, Arc<ChunkState>)>, Vec<ChunkIndex>) {
        let mut of_fragments = vec![Vec::new(); self.ids.len()];
        let mut others = Vec::new();
        for chunk in chunks {
            match self.sharing.computations.of_chunk(chunk) {
                Some((fragment, key)) => of_fragments[fragment].push((chunk, key)),
                None => others.push(chunk),
            }
        }
        let mut published = Vec::new();
        for (&id, chunks) in self.ids.iter().zip(&of_fragments) {
            for chunks in chunks.chunks(LOOKUPS_MAX) {
                let states = self.store.find(id, chunks.iter().map(|(_, key)| *key));
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
    pub(crate) fn news(&self) -> Vec<(ChunkIndex, Arc<ChunkState>)> {
        let news = self.inbox.take().into_iter().filter_map(|News { fragment, chunk, state }| {
            let fragment = self.ids.iter().position(|&id| id == fragment)?;
            Some((self.sharing.computations.chunk(fragment, chunk)?, state))
        });
        news.collect()
    }

    /// Wakes a worker when others have published states.
    pub(crate) fn wake(&self, worker: usize, waker: &Waker) {
        if let Some(kept) = self.inbox.wakers.get(worker) {
            kept.register(waker);
        }
    }

    /// Whether the state of a chunk is of use to others.
    pub(crate) fn is_wanted(&self, chunk: ChunkIndex) -> bool {
        let place = self.sharing.computations.of_chunk(chunk);
        place.is_some_and(|(fragment, _)| self.store.wants(self.ids[fragment]))
    }

    /// Publishes the state of a chunk of so many rows.
    ///
    /// # Errors
    /// If the batches differ in their columns.
    pub(crate) fn publish(
        &self,
        chunk: ChunkIndex,
        rows: u64,
        schema: &SchemaRef,
        batches: &[RecordBatch],
    ) -> Result<Result<(), NotPublished>> {
        let Some((fragment, key)) = self.sharing.computations.of_chunk(chunk) else {
            return internal_err!("only states that are wanted are published");
        };
        let (id, manager) = (self.ids[fragment], &self.sharing.manager);
        let state = ChunkState::new(manager, self.store.bytes(), schema, batches, rows)?;
        let published = state.and_then(|state| {
            let is_published =
                self.store.publish(manager, (id, key), &Arc::new(state), &self.inbox);
            if is_published { Ok(()) } else { Err(NotPublished::NoMemory) }
        });
        if published == Err(NotPublished::TooLarge) {
            self.store.refuse(id);
        }
        let counts = &self.store.counts;
        let count = if published.is_ok() { &counts.published } else { &counts.refused };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(published)
    }

    /// Notes that the state of a chunk is too large.
    pub(crate) fn refuse(&self, chunk: ChunkIndex) {
        if let Some((fragment, _)) = self.sharing.computations.of_chunk(chunk) {
            self.store.refuse(self.ids[fragment]);
            self.store.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that the state of a chunk was taken from another query.
    pub(crate) fn count_taken(&self) {
        self.store.counts.taken.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.ids.iter().for_each(|&id| self.store.leave(id, &self.inbox));
    }
}
