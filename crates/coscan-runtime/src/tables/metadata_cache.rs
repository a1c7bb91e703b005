//! Values made from the metadata of files, which can be made again. They are kept as long as there is memory for them.
//!
//! Values in use always stay. The others are dropped least recently used first.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_core::MissingMemory;

use crate::sync::destructor::InDestructor;

/// A place for a value that can be made again. It is empty until a value is put in, and becomes empty again when memory
/// is short while the value is not in use.
pub struct CachedMetadata<T> {
    values: Arc<MetadataCache>,
    id: u64,
    of: PhantomData<fn() -> T>,
}

impl<T: Any + Send + Sync> CachedMetadata<T> {
    pub(crate) fn new(values: &Arc<MetadataCache>) -> Self {
        let mut state = values.lock();
        state.next_id += 1;
        Self { values: Arc::clone(values), id: state.next_id, of: PhantomData }
    }

    /// The value, if it is there. It stays as long as the result is held.
    #[must_use]
    pub fn get(&self) -> Option<Arc<T>> {
        let mut state = self.values.lock();
        let value = state.use_now(self.id)?;
        value.downcast().ok()
    }

    /// Whether the value is there. This does not count as a use.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.values.lock().values.contains_key(&self.id)
    }

    /// Puts a value in. `bytes` are about the bytes that are free once it is dropped.
    pub fn put(&self, value: Arc<T>, bytes: u64) {
        let mut state = self.values.lock();
        let before = state.take(self.id);
        state.insert(self.id, value, bytes);
        drop(state);
        drop(before); // Not under the lock: that returns memory.
    }
}

impl<T> Drop for CachedMetadata<T> {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        let value = self.values.lock().take(self.id);
        drop(value); // Not under the lock: that returns memory.
    }
}

impl<T> fmt::Debug for CachedMetadata<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedMetadata").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The values of all slots.
#[derive(Debug, Default)]
pub(crate) struct MetadataCache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    values: BTreeMap<u64, Value>,
    /// The values by their last use.
    by_use: BTreeMap<u64, u64>,
    of_types: BTreeMap<TypeId, OfType>,
    next_id: u64,
    clock: u64,
}

/// All values of a type.
#[derive(Debug, Default)]
struct OfType {
    bytes: u64,
    by_use: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Value {
    value: Arc<dyn Any + Send + Sync>,
    bytes: u64,
    /// The count of uses when it was last used.
    used: u64,
}

impl Value {
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.value) == 1
    }
}

impl State {
    fn insert(&mut self, id: u64, value: Arc<dyn Any + Send + Sync>, bytes: u64) {
        self.clock += 1;
        let used = self.clock;
        let of_type = self.of_types.entry((*value).type_id()).or_default();
        of_type.bytes += bytes;
        of_type.by_use.insert(used, id);
        self.by_use.insert(used, id);
        self.values.insert(id, Value { value, bytes, used });
    }

    fn use_now(&mut self, id: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let kept = self.values.get_mut(&id)?;
        self.clock += 1;
        let before = std::mem::replace(&mut kept.used, self.clock);
        let value = Arc::clone(&kept.value);
        let of_type = self.of_types.entry((*value).type_id()).or_default();
        for by_use in [&mut of_type.by_use, &mut self.by_use] {
            by_use.remove(&before);
            by_use.insert(self.clock, id);
        }
        Some(value)
    }

    fn take(&mut self, id: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let Value { value, bytes, used } = self.values.remove(&id)?;
        let of_type = self.of_types.entry((*value).type_id()).or_default();
        of_type.bytes = of_type.bytes.saturating_sub(bytes);
        of_type.by_use.remove(&used);
        self.by_use.remove(&used);
        Some(value)
    }

    /// Unused values of one type, or of all, with their bytes, least recently used first.
    fn unused(&self, of: Option<TypeId>) -> impl Iterator<Item = (u64, u64)> + '_ {
        let by_use = match of {
            Some(of) => self.of_types.get(&of).map(|of_type| &of_type.by_use),
            None => Some(&self.by_use),
        };
        let ids = by_use.into_iter().flat_map(BTreeMap::values);
        let values = ids.map(|id| (*id, &self.values[id]));
        values.filter(|(_, value)| value.is_unused()).map(|(id, value)| (id, value.bytes))
    }
}

impl MetadataCache {
    /// The approximate bytes that are free once all unused values are dropped, or `enough` if there are more.
    pub(crate) fn unused_bytes(&self, enough: u64) -> u64 {
        let state = self.lock();
        let mut sum = 0_u64;
        for (_, bytes) in state.unused(None) {
            sum = sum.saturating_add(bytes);
            if sum >= enough {
                return enough;
            }
        }
        sum
    }

    /// Drops unused values, least recently used first, until `is_enough` says so. Returns false if none was dropped.
    /// The bytes that a value frees are an estimate. If they were not enough, twice as many are dropped next, so the
    /// values are looked through only a few times, however many are dropped.
    pub(crate) fn drop_unused(&self, missing: MissingMemory, is_enough: impl Fn() -> bool) -> bool {
        let mut bytes = missing.bytes;
        let mut has_dropped = false;
        loop {
            let unused = self.take_unused(None, bytes);
            if unused.is_empty() {
                return has_dropped;
            }
            drop(unused);
            has_dropped = true;
            if is_enough() {
                return true;
            }
            bytes = bytes.saturating_mul(2);
        }
    }

    /// Removes unused values of one type, or of all, least recently used first, until they make `bytes` bytes. Removes
    /// none if all are in use. The caller drops them, not under a lock, since that returns memory.
    pub(super) fn take_unused(
        &self,
        of: Option<TypeId>,
        bytes: u64,
    ) -> Vec<Arc<dyn Any + Send + Sync>> {
        let mut state = self.lock();
        let mut taken_bytes = 0_u64;
        let unused = state.unused(of).take_while(|&(_, of_value)| {
            let takes = taken_bytes < bytes.max(1);
            taken_bytes = taken_bytes.saturating_add(of_value);
            takes
        });
        let ids: Vec<_> = unused.map(|(id, _)| id).collect();
        ids.into_iter().filter_map(|id| state.take(id)).collect()
    }

    /// The bytes of all values of a type.
    pub(crate) fn bytes_of(&self, of: TypeId) -> u64 {
        self.lock().of_types.get(&of).map_or(0, |of_type| of_type.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Makes values of 100 bytes.
    fn values(count: u64) -> (Arc<MetadataCache>, Vec<CachedMetadata<u64>>) {
        let cache = Arc::default();
        let slots = (0..count).map(|value| {
            let slot = CachedMetadata::new(&cache);
            slot.put(Arc::new(value), 100);
            slot
        });
        let slots = slots.collect();
        (cache, slots)
    }

    #[test]
    fn those_used_longest_ago_are_dropped_as_far_as_needed() {
        let (cache, slots) = values(6);
        let in_use = slots[1].get().unwrap();
        drop(slots[0].get());
        assert!(cache.drop_unused(MissingMemory { bytes: 201 }, || true));
        let left = slots.iter().filter_map(CachedMetadata::get).map(|value| *value);
        assert_eq!(left.collect::<Vec<_>>(), [0, 1, 5]);
        drop(in_use);
    }

    #[test]
    fn however_many_have_to_go_they_are_looked_through_a_few_times() {
        let (cache, slots) = values(1_000);
        let looks = Cell::new(0);
        let frees_nothing = || {
            looks.set(looks.get() + 1);
            false
        };
        assert!(cache.drop_unused(MissingMemory { bytes: 1 }, frees_nothing));
        assert!(slots.iter().all(|slot| slot.get().is_none()));
        assert!(looks.get() <= 20, "{}", looks.get());
        assert!(!cache.drop_unused(MissingMemory { bytes: 1 }, || true), "none is left");
    }
}
