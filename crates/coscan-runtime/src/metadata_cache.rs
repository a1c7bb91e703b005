//! Values made of the metadata of files, which can be made again: they are kept as long as there is memory for them.
//!
//! Values in use stay in any case. The others are dropped least recently used first.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::{Holder, MemoryBudget, Missing};

/// Optional metadata of one type takes at most this part of the budget.
const OPTIONAL_PART: u64 = 8;

/// A place for a value that can be made again. It is empty until a value is put in, and again after memory was short while
/// the value was not in use.
pub struct CacheSlot<T> {
    values: Arc<MetadataCache>,
    id: u64,
    of: PhantomData<fn() -> T>,
}

impl<T: Any + Send + Sync> CacheSlot<T> {
    pub(crate) fn new(values: &Arc<MetadataCache>) -> Self {
        let mut state = values.lock();
        state.next_id += 1;
        Self { values: Arc::clone(values), id: state.next_id, of: PhantomData }
    }

    /// The value, if it is there. As long as the result is held, it stays.
    #[must_use]
    pub fn get(&self) -> Option<Arc<T>> {
        let mut state = self.values.lock();
        let now = state.tick();
        let value = state.values.get_mut(&self.id)?;
        value.used = now;
        Arc::clone(&value.value).downcast().ok()
    }

    /// Puts a value in. `bytes` is about what is free once it is dropped.
    pub fn put(&self, value: Arc<T>, bytes: u64) {
        let mut state = self.values.lock();
        let before = state.take(self.id);
        let used = state.tick();
        *state.bytes.entry(TypeId::of::<T>()).or_default() += bytes;
        state.values.insert(self.id, Value { value, bytes, used });
        drop(state);
        drop(before); // Not under the lock: that returns memory.
    }
}

impl<T> Drop for CacheSlot<T> {
    fn drop(&mut self) {
        let value = self.values.lock().take(self.id);
        drop(value); // Not under the lock: that returns memory.
    }
}

impl<T> fmt::Debug for CacheSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheSlot").field("id", &self.id).finish_non_exhaustive()
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
    /// Of all values of a type.
    bytes: BTreeMap<TypeId, u64>,
    next_id: u64,
    clock: u64,
}

#[derive(Debug)]
struct Value {
    value: Arc<dyn Any + Send + Sync>,
    bytes: u64,
    /// When it was last used.
    used: u64,
}

impl Value {
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.value) == 1
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn take(&mut self, id: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let Value { value, bytes, .. } = self.values.remove(&id)?;
        let of_type = self.bytes.entry((*value).type_id()).or_default();
        *of_type = of_type.saturating_sub(bytes);
        Some(value)
    }
}

impl MetadataCache {
    /// About how many bytes are free once all unused values are dropped.
    pub(crate) fn unused_bytes(&self) -> u64 {
        let state = self.lock();
        state.values.values().filter(|value| value.is_unused()).map(|value| value.bytes).sum()
    }

    /// Removes the least recently used of the unused values of one type, or of all; `None` if all are in use.
    pub(crate) fn take_unused(&self, of: Option<TypeId>) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut state = self.lock();
        let is_candidate =
            |value: &Value| value.is_unused() && of.is_none_or(|of| (*value.value).type_id() == of);
        let unused = state.values.iter().filter(|(_, value)| is_candidate(value));
        let (&id, _) = unused.min_by_key(|(_, value)| value.used)?;
        state.take(id)
    }

    fn bytes_of(&self, of: TypeId) -> u64 {
        self.lock().bytes.get(&of).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory for metadata, until this is dropped.
#[derive(Debug)]
pub struct MetadataReservation {
    memory: Arc<MemoryBudget>,
    bytes: u64,
}

impl MetadataReservation {
    /// # Errors
    /// The missing bytes.
    pub(crate) fn try_new(memory: &Arc<MemoryBudget>, bytes: u64) -> Result<Self, Missing> {
        memory.try_take(Holder::Metadata, bytes)?;
        Ok(Self { memory: Arc::clone(memory), bytes })
    }

    /// Memory that is in use already, even beyond the budget.
    pub(crate) fn of_held(memory: &Arc<MemoryBudget>, bytes: u64) -> Self {
        memory.take(Holder::Metadata, bytes);
        Self { memory: Arc::clone(memory), bytes }
    }

    /// Memory for a value that queries can do without. Only unused values of its type are dropped for it.
    pub(crate) fn try_optional(
        memory: &Arc<MemoryBudget>,
        cache: &MetadataCache,
        of: TypeId,
        bytes: u64,
    ) -> Option<Self> {
        let bytes_max = memory.budget_bytes() / OPTIONAL_PART;
        if bytes > bytes_max {
            return None; // However many others are dropped.
        }
        loop {
            if cache.bytes_of(of).saturating_add(bytes) <= bytes_max
                && let Ok(reservation) = Self::try_new(memory, bytes)
            {
                return Some(reservation);
            }
            drop(cache.take_unused(Some(of))?);
        }
    }
}

impl Drop for MetadataReservation {
    fn drop(&mut self) {
        self.memory.give(Holder::Metadata, self.bytes);
    }
}
