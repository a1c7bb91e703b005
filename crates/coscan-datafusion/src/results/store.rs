//! The published states of all queries of a manager.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_runtime::core::ComputationId;
use coscan_runtime::{BufferManager, CachedMetadata};

use super::computations::ChunkKey;
use super::fragment::Fragment;
use super::state::ChunkState;
use super::subscription::{Inbox, News};

/// States take at most one in this many bytes of the memory budget.
const BUDGET_DIVISOR: u64 = 100;

/// The most fragments that are remembered.
const FRAGMENTS_MAX: usize = 1024;

/// A fragment with this many chunks whose states were too large is not tried again.
const TOO_LARGE_MAX: usize = 3;

/// The published states. Each manager has one store.
#[derive(Debug)]
pub(crate) struct ResultStore {
    bytes_max: u64,
    /// The bytes of all states that are in it, or that a query has still to take.
    bytes: Arc<AtomicU64>,
    pub(super) counts: Counts,
    fragments: Mutex<Fragments>,
}

/// Chunks, since the manager was made.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) published: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Fragments {
    ids: HashMap<Arc<Fragment>, ComputationId>,
    published: HashMap<ComputationId, Published>,
    next: u64,
    /// Counts uses.
    clock: u64,
}

/// The states of a fragment.
#[derive(Debug)]
struct Published {
    fragment: Arc<Fragment>,
    /// The states, each as long as there is memory for it.
    states: HashMap<ChunkKey, CachedMetadata<ChunkState>>,
    /// The running queries that have the fragment.
    inboxes: BTreeMap<u64, Arc<Inbox>>,
    /// Whether states stay when no query has the fragment any more.
    are_kept: bool,
    too_large: usize,
    used: u64,
}

impl ResultStore {
    /// The store of a manager.
    pub(super) fn of(manager: &BufferManager) -> Arc<Self> {
        let bytes_max = manager.options().memory_bytes / BUDGET_DIVISOR;
        manager.extension(|| Self {
            bytes_max,
            bytes: Arc::default(),
            counts: Counts::default(),
            fragments: Mutex::default(),
        })
    }

    /// The bytes of all states.
    pub(super) fn bytes(&self) -> &Arc<AtomicU64> {
        &self.bytes
    }

    /// Adds a query to those that have a fragment.
    pub(super) fn join(
        &self,
        fragment: &Arc<Fragment>,
        inbox: &Arc<Inbox>,
        keeps: bool,
    ) -> ComputationId {
        let mut fragments = self.lock();
        let id = fragments.id_of(fragment);
        let published = fragments.published.get_mut(&id).expect("an id has its fragment");
        published.are_kept |= keeps;
        published.inboxes.insert(inbox.number(), Arc::clone(inbox));
        id
    }

    /// Removes a query from those that have a fragment.
    pub(super) fn leave(&self, id: ComputationId, inbox: &Inbox) {
        let mut fragments = self.lock();
        let Some(published) = fragments.published.get_mut(&id) else { return };
        published.inboxes.remove(&inbox.number());
        if published.inboxes.is_empty() && !published.are_kept {
            published.states.clear();
        }
    }

    /// The states of some chunks, where they are published.
    pub(super) fn find<'a>(
        &self,
        id: ComputationId,
        chunks: impl Iterator<Item = &'a ChunkKey>,
    ) -> Vec<Option<Arc<ChunkState>>> {
        let mut fragments = self.lock();
        let Some(published) = fragments.published.get_mut(&id) else {
            return chunks.map(|_| None).collect();
        };
        let find = |chunk| {
            let state = published.states.get(chunk)?.get();
            if state.is_none() {
                published.states.remove(chunk); // It was dropped because memory was short.
            }
            state
        };
        chunks.map(find).collect()
    }

    /// Whether the states of a fragment are worth computing apart: they are of use to others, now or later, and small.
    pub(super) fn wants(&self, id: ComputationId) -> bool {
        self.lock().published.get(&id).is_some_and(|published| {
            let has_others = published.inboxes.len() > 1;
            published.too_large < TOO_LARGE_MAX && (published.are_kept || has_others)
        })
    }

    /// Notes that the state of a chunk was too large.
    pub(super) fn refuse(&self, id: ComputationId) {
        if let Some(published) = self.lock().published.get_mut(&id) {
            published.too_large += 1;
        }
    }

    /// Publishes the state of a chunk to all queries that have the fragment but the one that computed it. Returns false if there
    /// is no room for it.
    pub(super) fn publish(
        &self,
        manager: &BufferManager,
        (id, chunk): (ComputationId, &ChunkKey),
        state: &Arc<ChunkState>,
        by: &Inbox,
    ) -> bool {
        let kept = manager.cache_slot();
        kept.put(Arc::clone(state), state.bytes());
        let mut fragments = self.lock();
        while self.bytes.load(Ordering::Relaxed) > self.bytes_max {
            if !fragments.remove_oldest(Some(id)) {
                return false;
            }
        }
        let Some(published) = fragments.published.get_mut(&id) else { return false };
        let others = published.inboxes.values().filter(|inbox| inbox.number() != by.number());
        let others: Vec<_> = others.cloned().collect();
        let before = published.states.insert(chunk.clone(), kept);
        drop((fragments, before));
        for inbox in others {
            let (chunk, state) = (chunk.clone(), Arc::clone(state));
            inbox.put(News { fragment: id, chunk, state });
        }
        true
    }

    /// The number of fragments that are remembered.
    pub(super) fn fragment_count(&self) -> usize {
        self.lock().published.len()
    }

    fn lock(&self) -> MutexGuard<'_, Fragments> {
        self.fragments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fragments {
    fn id_of(&mut self, fragment: &Arc<Fragment>) -> ComputationId {
        self.clock += 1;
        let used = self.clock;
        if let Some(&id) = self.ids.get(fragment) {
            let published = self.published.get_mut(&id).expect("an id has its fragment");
            published.used = used;
            return id;
        }
        if self.ids.len() >= FRAGMENTS_MAX {
            self.remove_oldest(None);
        }
        let id = ComputationId(self.next);
        self.next += 1;
        self.ids.insert(Arc::clone(fragment), id);
        let published = Published {
            fragment: Arc::clone(fragment),
            states: HashMap::new(),
            inboxes: BTreeMap::new(),
            are_kept: false,
            too_large: 0,
            used,
        };
        self.published.insert(id, published);
        id
    }

    /// Removes the fragment that was used longest ago, of those that no query has. Returns false if there is none.
    fn remove_oldest(&mut self, except: Option<ComputationId>) -> bool {
        let is_unused = |(id, published): &(&ComputationId, &Published)| {
            published.inboxes.is_empty() && Some(**id) != except
        };
        let unused = self.published.iter().filter(is_unused);
        let oldest = unused.min_by_key(|(_, published)| published.used).map(|(&id, _)| id);
        let Some(removed) = oldest.and_then(|oldest| self.published.remove(&oldest)) else {
            return false;
        };
        self.ids.remove(&removed.fragment);
        true
    }
}
