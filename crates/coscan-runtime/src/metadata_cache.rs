//! What is made of the metadata of files, and can be made again: it stays as long as there is memory for it.
//!
//! What somebody uses stays in any case. Of the rest, what was used last goes last.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::Driver;
use crate::error::OpenError;
use crate::memory::{Holder, Memory, Missing};

/// Of the budget, optional metadata of one type takes no more than this part.
const OPTIONAL_PART: u64 = 8;

/// A place for a value that can be made again. It is empty until somebody puts one in, and again when memory was short
/// while nobody used the value.
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

    /// Puts a value in. `bytes` is about what is free when it goes.
    pub fn put(&self, value: Arc<T>, bytes: u64) {
        let mut state = self.values.lock();
        let before = state.take(self.id);
        let used = state.tick();
        *state.bytes.entry(TypeId::of::<T>()).or_default() += bytes;
        state.values.insert(self.id, Value { value, bytes, used });
        drop(state);
        drop(before); // Not under the lock: that gives memory back.
    }
}

impl<T> Drop for CacheSlot<T> {
    fn drop(&mut self) {
        let value = self.values.lock().take(self.id);
        drop(value); // Not under the lock: that gives memory back.
    }
}

impl<T> fmt::Debug for CacheSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheSlot").field("id", &self.id).finish_non_exhaustive()
    }
}

/// All such values.
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
    /// When it was used last.
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
    /// About how many bytes are free when all goes that nobody uses.
    fn unused_bytes(&self) -> u64 {
        let state = self.lock();
        state.values.values().filter(|value| value.is_unused()).map(|value| value.bytes).sum()
    }

    /// Takes out, of the values of one type or of all, what nobody uses and was not used for longest; `None` if all is
    /// in use.
    fn take_unused(&self, of: Option<TypeId>) -> Option<Arc<dyn Any + Send + Sync>> {
        let mut state = self.lock();
        let is_meant =
            |value: &Value| value.is_unused() && of.is_none_or(|of| (*value.value).type_id() == of);
        let unused = state.values.iter().filter(|(_, value)| is_meant(value));
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

impl Driver {
    /// Drops metadata that nobody uses until so much is free, or there is no more; false if none was dropped.
    pub(crate) fn drop_unused_metadata(&self, missing: Missing) -> bool {
        let footer_bytes = || self.memory().usage().footer_bytes;
        let before_bytes = footer_bytes();
        let mut has_dropped = false;
        while before_bytes.saturating_sub(footer_bytes()) < missing.bytes {
            let Some(value) = self.metadata_cache().take_unused(None) else { break };
            has_dropped = true;
            drop(value);
            self.open_files().forget_closed();
        }
        has_dropped
    }

    /// Makes room of whatever is least wanted: metadata that nobody uses, then decoded columns that nobody waits for.
    /// If all of them are too few, none goes, and the result is false.
    pub(crate) fn make_room_of_all(&self, missing: Missing) -> bool {
        let unused_bytes = self.metadata_cache().unused_bytes();
        if unused_bytes == 0 {
            return self.make_room(missing, usize::MAX);
        }
        let decoded_bytes: u64 = self.decoded().kept().iter().map(|kept| kept.bytes).sum();
        unused_bytes.saturating_add(decoded_bytes) >= missing.bytes
            && self.drop_unused_metadata(missing)
    }
}

/// Memory for metadata, until this is dropped.
#[derive(Debug)]
pub struct MetadataReservation {
    memory: Arc<Memory>,
    bytes: u64,
}

impl MetadataReservation {
    /// Memory without which a query cannot go on.
    pub(crate) fn take(driver: &Driver, bytes: u64) -> Result<Self, OpenError> {
        let memory = driver.memory();
        while let Err(missing) = memory.try_take(Holder::Footers, bytes) {
            if !driver.make_room_of_all(missing) {
                return Err(driver.exhausted(bytes).into());
            }
        }
        Ok(Self { memory: Arc::clone(memory), bytes })
    }

    /// Memory for a value of a type that a query can do without. Only values of that type that nobody uses go for it.
    pub(crate) fn take_optional(driver: &Driver, of: TypeId, bytes: u64) -> Option<Self> {
        let (memory, kept) = (driver.memory(), driver.metadata_cache());
        let bytes_max = memory.budget_bytes() / OPTIONAL_PART;
        if bytes > bytes_max {
            return None; // Nothing that gives way would make room.
        }
        while kept.bytes_of(of).saturating_add(bytes) > bytes_max
            || memory.try_take(Holder::Footers, bytes).is_err()
        {
            drop(kept.take_unused(Some(of))?);
        }
        Some(Self { memory: Arc::clone(memory), bytes })
    }
}

impl Drop for MetadataReservation {
    fn drop(&mut self) {
        self.memory.give(Holder::Footers, self.bytes);
    }
}
