//! Idle slices: no scan needs them, but they stay decoded for later scans while memory is free.
//!
//! A slice stays if it was used before. Its next use is expected after as long a pause as the one before its last use. It is
//! overdue once twice that pause has passed. Overdue slices are given up first, then those that are overdue last. So of a
//! table that is too large and is read again and again, a part stays, where "least recently used first" would keep nothing
//! until it is used. Time is counted in uses of slices.
//!
//! A scan that decodes a column for itself, batch by batch, collects the arrays for later scans ([`UnsharedUse`]) if the slice was
//! used before. That costs nothing but memory, and nothing at all for a scan that stops early.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow::array::ArrayData;
use arrow_array::{Array, ArrayRef};

use super::{Content, DecodeCache, Decoding, Entry, Keep, Slice, SliceKey, State};
use crate::tables::registry::FileId;

/// At least this many last uses are remembered, at most twice as many, of about 100 bytes each.
const USES_REMEMBERED: usize = 1 << 16;

/// The last uses of slices.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The number of uses so far.
    count: u64,
    recent: BTreeMap<SliceKey, LastUse>,
    /// Those that were remembered before `recent` was full, some of them.
    earlier: BTreeMap<SliceKey, LastUse>,
}

#[derive(Clone, Copy, Debug)]
struct LastUse {
    at: u64,
    /// The pause before it.
    pause: u64,
}

impl Uses {
    /// The pause before a use now; `None` if the slice was not used before. Two queries in a row are followed by a pause as long
    /// as the one before them, so a pause counts at least half as much as the one before it.
    fn pause(&self, key: SliceKey) -> Option<u64> {
        let last = self.last(key)?;
        Some((self.count - last.at).max(last.pause / 2))
    }

    /// The use by which a slice is overdue if it is used now; `None` if it was not used before.
    fn due(&self, key: SliceKey) -> Option<u64> {
        self.pause(key).map(|pause| self.count + 2 * pause)
    }

    fn last(&self, key: SliceKey) -> Option<LastUse> {
        self.recent.get(&key).or_else(|| self.earlier.get(&key)).copied()
    }

    /// Notes a use. Returns the use by which it is overdue.
    fn note(&mut self, key: SliceKey) -> Option<u64> {
        self.count += 1;
        let (due, pause) = (self.due(key), self.pause(key).unwrap_or(0));
        self.earlier.pop_last(); // Until `recent` is full again, none is left to be dropped at once.
        if self.recent.len() >= USES_REMEMBERED {
            self.earlier = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, LastUse { at: self.count, pause });
        due
    }
}

/// A slice that no scan needs any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Retired {
    /// It is not decoded, expected by a worker, or idle already.
    StillUsed,
    /// This was its first use, as far as is remembered.
    New,
    /// It was used before. It is overdue by the use `due`.
    UsedBefore { due: u64 },
}

/// The idle slices, and those that are being collected.
#[derive(Debug, Default)]
pub(super) struct IdleSlices {
    by_due: BTreeSet<(u64, SliceKey)>,
    collections: Vec<Weak<CollectedArrays>>,
    /// The number of uses when [`DecodeCache::unused_since_last`] was last called.
    count_at_sweep: u64,
}

/// The arrays of a slice so far; `None` once they were given up.
type CollectedArrays = Mutex<Option<Vec<ArrayRef>>>;

impl DecodeCache {
    /// The memory of idle slices in bytes.
    pub(crate) fn idle_bytes(&self) -> u64 {
        self.idle_bytes.load(Ordering::Relaxed)
    }

    /// Notes that no scan needs a slice any more, if it is decoded and no worker expects it.
    pub(crate) fn retire(&self, key: SliceKey) -> Retired {
        let mut state = self.lock();
        let State { entries, uses, .. } = &mut *state;
        if !entries.get(&key).is_some_and(Entry::may_be_idle) {
            return Retired::StillUsed;
        }
        uses.note(key).map_or(Retired::New, |due| Retired::UsedBefore { due })
    }

    /// Keeps a slice that no scan needs for later scans, if it is still decoded and no worker expects it.
    pub(crate) fn keep_idle(&self, key: SliceKey, due: u64) {
        let mut state = self.lock();
        if !state.entries.get(&key).is_some_and(Entry::may_be_idle) {
            return;
        }
        let idle = state.change(key, |entry| {
            entry.due = Some(due);
            (entry.unexpected_bytes(), Keep::Yes)
        });
        if let Some((bytes, _)) = idle {
            state.idle.by_due.insert((due, key));
            self.idle_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Begins a use of a slice by a scan that decodes it for itself.
    pub(crate) fn use_alone(self: &Arc<Self>, key: SliceKey) -> UnsharedUse {
        let mut state = self.lock();
        let due = state.uses.due(key);
        let arrays = due.map(|_| Arc::new(Mutex::new(Some(Vec::new()))));
        let collections = &mut state.idle.collections;
        if let Some(arrays) = &arrays {
            if collections.len() == collections.capacity() {
                collections.retain(|collection| collection.strong_count() > 0);
            }
            collections.push(Arc::downgrade(arrays));
            self.collecting.store(collections.len(), Ordering::Relaxed);
        }
        UnsharedUse { cache: Arc::clone(self), key, due, arrays }
    }

    /// The idle slice to drop first: the longest overdue one, else the one that will be overdue latest, if that is later than
    /// `due`.
    pub(crate) fn first_to_drop(&self, due: Option<u64>) -> Option<SliceKey> {
        let state = self.lock();
        let first = state.idle.by_due.first().filter(|(overdue, _)| *overdue < state.uses.count);
        let last = state.idle.by_due.last().filter(|(last, _)| due.is_none_or(|due| *last > due));
        first.or(last).map(|(_, key)| *key)
    }

    /// Notes that a slice is not idle: it may be dropped like others.
    pub(crate) fn mark_needed(&self, key: SliceKey) {
        self.leave_idle(&mut self.lock(), key);
    }

    /// Gives up what scans have collected so far. The caller drops it, not under a lock.
    pub(crate) fn stop_collecting(&self) -> Vec<ArrayRef> {
        if self.collecting.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut state = self.lock();
        let collections = std::mem::take(&mut state.idle.collections);
        self.collecting.store(0, Ordering::Relaxed);
        drop(state);
        let collections = collections.iter().filter_map(Weak::upgrade);
        collections.filter_map(|collection| lock(&collection).take()).flatten().collect()
    }

    /// The decoded slices of a file that no worker expects.
    pub(crate) fn unexpected_of(&self, file: FileId) -> Vec<SliceKey> {
        let first = SliceKey { file, chunk: coscan_core::ChunkIndex(0), column: 0 };
        let state = self.lock();
        let entries = state.entries.range(first..).take_while(|(key, _)| key.file == file);
        entries.filter(|(_, entry)| entry.is_unexpected()).map(|(&key, _)| key).collect()
    }

    /// The idle slices that were not used since the last call.
    pub(crate) fn unused_since_last(&self) -> Vec<SliceKey> {
        let mut state = self.lock();
        let State { uses, idle, .. } = &mut *state;
        let since = std::mem::replace(&mut idle.count_at_sweep, uses.count);
        let is_unused = |key: &SliceKey| uses.last(*key).is_none_or(|last| last.at <= since);
        idle.by_due.iter().map(|(_, key)| *key).filter(is_unused).collect()
    }

    pub(super) fn leave_idle(&self, state: &mut State, key: SliceKey) {
        let left = state.change(key, |entry| {
            let due = entry.due.take();
            (due.map(|due| (due, entry.unexpected_bytes())), Keep::Yes)
        });
        if let Some((Some((due, bytes)), _)) = left {
            state.idle.by_due.remove(&(due, key));
            self.idle_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Claims a slice that a scan has decoded for itself; `None` if it is decoded already, or being decoded.
    fn begin_collected(self: &Arc<Self>, key: SliceKey) -> Option<Decoding> {
        let mut state = self.lock();
        let entry = state.entries.entry(key).or_insert(Entry::ABSENT);
        if !matches!(entry.content, Content::Absent) {
            return None;
        }
        entry.content = Content::Decoding(Arc::default());
        Some(Decoding { cache: Arc::clone(self), key, has_ended: false })
    }
}

#[cfg(test)]
impl State {
    /// The idle slices, in order.
    pub(super) fn idle_keys(&self) -> Vec<SliceKey> {
        let idle = self.entries.iter().filter(|(_, entry)| entry.due.is_some());
        idle.map(|(&key, _)| key).collect()
    }
}

/// A use of a slice by a scan that decodes it for itself.
#[derive(Debug)]
pub(crate) struct UnsharedUse {
    cache: Arc<DecodeCache>,
    key: SliceKey,
    due: Option<u64>,
    /// The arrays so far, if they are collected for later scans.
    arrays: Option<Arc<CollectedArrays>>,
}

impl UnsharedUse {
    /// The use by which the slice is overdue, if its arrays are collected.
    pub(crate) fn due(&self) -> Option<u64> {
        self.due.filter(|_| self.arrays.is_some())
    }

    /// Collects the next array.
    pub(crate) fn add(&mut self, array: &ArrayRef) {
        let Some(arrays) = &self.arrays else { return };
        match &mut *lock(arrays) {
            Some(arrays) => arrays.push(Arc::clone(array)),
            None => self.due = None,
        }
    }

    /// Gives up what was collected.
    pub(crate) fn stop(&mut self) {
        self.arrays = None;
    }

    /// Notes the use, which has come to the end of the slice. What was collected stays for later scans. `announce` is called
    /// before they can find it.
    pub(crate) fn end(self, announce: impl FnOnce(SliceKey)) {
        let Self { cache, key, arrays, .. } = self;
        let due = cache.lock().uses.note(key);
        let arrays = arrays.and_then(|arrays| lock(&arrays).take());
        let (Some(due), Some(arrays)) = (due, arrays) else { return };
        let Some(decoding) = cache.begin_collected(key) else { return };
        announce(key);
        let bytes = buffer_bytes(&arrays);
        decoding.finish(Slice::from(arrays), bytes);
        cache.keep_idle(key, due);
    }
}

/// The memory of arrays that may refer to the same buffers.
fn buffer_bytes(arrays: &[ArrayRef]) -> u64 {
    fn add(data: &ArrayData, buffers: &mut BTreeMap<usize, u64>) {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(nulls) {
            buffers.insert(buffer.data_ptr().as_ptr() as usize, buffer.capacity() as u64);
        }
        data.child_data().iter().for_each(|child| add(child, buffers));
    }
    let mut buffers = BTreeMap::new();
    arrays.iter().for_each(|array| add(&array.to_data(), &mut buffers));
    buffers.values().sum()
}

fn lock(collection: &CollectedArrays) -> MutexGuard<'_, Option<Vec<ArrayRef>>> {
    collection.lock().unwrap_or_else(PoisonError::into_inner)
}
