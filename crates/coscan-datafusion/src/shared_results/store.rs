//! The published states of all queries of a manager.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_runtime::core::ComputationId;
use coscan_runtime::{BufferManager, CachedMetadata};

use super::computations::{ChunkKey, FileColumns};
use super::fragment::Fragment;
use super::inbox::{Inbox, PublishedState};
use super::state::ChunkState;

/// The most fragments that are remembered, not counting those of running queries.
const FRAGMENTS_MAX: usize = 1024;

/// The chunks of a file, or of a query, whose states were too large, after which no more are computed apart.
pub(super) const TOO_LARGE_MAX: usize = 3;

/// The most files of a fragment of which too large states are counted.
const FILES_MAX: usize = 64;

/// States of a fragment below which none are forgotten.
const STATES_MIN: usize = 64;

/// The published states. Each manager has one store.
#[derive(Debug, Default)]
pub(crate) struct ResultStore {
    pub(super) counts: Counts,
    entries: Mutex<Entries>,
}

/// Chunks, since the manager was made.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) published: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Entries {
    of_fragments: HashMap<Arc<Fragment>, Arc<Entry>>,
    /// Counts uses, and the ids that were given.
    clock: u64,
}

/// What is known of a fragment. Running queries with the fragment refer to it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: ComputationId,
    /// When a query last had the fragment.
    used: AtomicU64,
    published: Mutex<Published>,
}

#[derive(Debug, Default)]
struct Published {
    /// The states, each as long as there is memory for it.
    states: HashMap<ChunkKey, CachedMetadata<ChunkState>>,
    /// The number of states at which it is time to forget those that were dropped.
    states_max: usize,
    /// The chunks of files whose states were too large. Tables may have a fragment in common, but groups of their own.
    too_large: HashMap<Arc<FileColumns>, usize>,
    inboxes: Vec<Arc<Inbox>>,
    /// Whether states stay when no query has the fragment any more.
    are_kept: bool,
}

impl ResultStore {
    /// The store of a manager.
    pub(super) fn of(manager: &BufferManager) -> Arc<Self> {
        manager.extension(Self::default)
    }

    /// The number of fragments that are remembered.
    pub(super) fn fragment_count(&self) -> usize {
        self.lock().of_fragments.len()
    }

    /// The entry of a fragment.
    pub(super) fn entry(&self, fragment: &Arc<Fragment>) -> Arc<Entry> {
        let mut entries = self.lock();
        entries.clock += 1;
        let now = entries.clock;
        let is_full = entries.of_fragments.len() >= FRAGMENTS_MAX;
        let new = || Arc::new(Entry::new(ComputationId(now), now));
        let known = entries.of_fragments.get(fragment).cloned();
        let forgotten = (known.is_none() && is_full).then(|| entries.remove_oldest());
        let entry = known.unwrap_or_else(|| {
            let entry = new();
            entries.of_fragments.insert(Arc::clone(fragment), Arc::clone(&entry));
            entry
        });
        entry.used.store(now, Ordering::Relaxed);
        drop(entries);
        drop(forgotten); // Not under the lock: that returns memory.
        entry
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove_oldest(&mut self) -> Option<Arc<Entry>> {
        // Only under the lock do others come to refer to an entry.
        let unused = self.of_fragments.iter().filter(|(_, entry)| Arc::strong_count(entry) == 1);
        let oldest = unused.min_by_key(|(_, entry)| entry.used.load(Ordering::Relaxed));
        let fragment = Arc::clone(oldest?.0);
        self.of_fragments.remove(&fragment)
    }
}

impl Entry {
    fn new(id: ComputationId, now: u64) -> Self {
        Self { id, used: AtomicU64::new(now), published: Mutex::default() }
    }

    /// Adds a query to those that are told of new states.
    pub(super) fn subscribe(&self, inbox: &Arc<Inbox>, keeps: bool) {
        let mut published = self.lock();
        published.are_kept |= keeps;
        published.inboxes.push(Arc::clone(inbox));
    }

    /// Removes a query from those that are told of new states.
    pub(super) fn unsubscribe(&self, inbox: &Arc<Inbox>) {
        let mut published = self.lock();
        published.inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
        let is_last = published.inboxes.is_empty() && !published.are_kept;
        let dropped = is_last.then(|| std::mem::take(&mut published.states));
        drop(published);
        drop(dropped); // Not under the lock: that returns memory.
    }

    /// The states of some chunks, where they are published.
    pub(super) fn find<'a>(
        &self,
        chunks: impl Iterator<Item = &'a ChunkKey>,
    ) -> Vec<Option<Arc<ChunkState>>> {
        let states = &mut self.lock().states;
        let find = |chunk| {
            let state = states.get(chunk)?.get();
            if state.is_none() {
                states.remove(chunk); // It was dropped because memory was short.
            }
            state
        };
        chunks.map(find).collect()
    }

    /// Whether it is worth while to compute the state of a chunk apart: it is of use to others, now or later, and likely small.
    pub(super) fn is_wanted(&self, chunk: &ChunkKey) -> bool {
        let published = self.lock();
        let has_use = published.are_kept || published.inboxes.len() > 1;
        has_use && published.too_large.get(&chunk.file).is_none_or(|&count| count < TOO_LARGE_MAX)
    }

    /// Notes that the state of a chunk was too large.
    pub(super) fn count_too_large(&self, chunk: &ChunkKey) {
        let mut published = self.lock();
        if published.too_large.len() >= FILES_MAX {
            published.too_large.clear();
        }
        *published.too_large.entry(Arc::clone(&chunk.file)).or_default() += 1;
    }

    /// Publishes the state of a chunk to all queries that have the fragment but the one that computed it.
    pub(super) fn publish(
        &self,
        manager: &BufferManager,
        chunk: &ChunkKey,
        state: &Arc<ChunkState>,
        by: &Arc<Inbox>,
    ) {
        let kept = manager.cache_slot();
        kept.put(Arc::clone(state), state.bytes());
        let mut published = self.lock();
        published.forget_dropped();
        let others = published.inboxes.iter().filter(|inbox| !Arc::ptr_eq(inbox, by));
        let others: Vec<_> = others.cloned().collect();
        let before = published.states.insert(chunk.clone(), kept);
        drop(published);
        drop(before); // Not under the lock: that returns memory.
        for inbox in others {
            let (chunk, state) = (chunk.clone(), Arc::clone(state));
            inbox.put(PublishedState { computation: self.id, chunk, state });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Published {
    /// Forgets states that were dropped because memory was short, now and then.
    fn forget_dropped(&mut self) {
        if self.states.len() >= self.states_max {
            self.states.retain(|_, state| state.is_filled());
            self.states_max = STATES_MIN.max(2 * self.states.len());
        }
    }
}
