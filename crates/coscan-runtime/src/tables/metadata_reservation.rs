//! Memory counted as metadata: footers and the values made from them, and the metadata of registered tables.

use std::any::TypeId;
use std::sync::Arc;

use coscan_core::MissingMemory;

use crate::memory::{Credit, MemoryBudget, MemoryUser};
use crate::sync::destructor::InDestructor;
use crate::tables::metadata_cache::MetadataCache;

/// Memory that is counted as metadata, until this is dropped.
#[derive(Debug)]
pub struct MetadataReservation {
    credit: Arc<Credit>,
    bytes: u64,
}

impl MetadataReservation {
    /// # Errors
    /// The missing bytes, if memory is short.
    pub(crate) fn try_new(memory: &Arc<MemoryBudget>, bytes: u64) -> Result<Self, MissingMemory> {
        memory.try_take(MemoryUser::Metadata, bytes)?;
        Ok(Self { credit: Arc::clone(memory.credit()), bytes })
    }

    /// Counts memory that is in use already, even beyond the budget. Not to be called under the lock, which this may
    /// take.
    pub(crate) fn of_held(memory: &Arc<MemoryBudget>, bytes: u64) -> Self {
        if memory.try_take(MemoryUser::Metadata, bytes).is_err() {
            memory.take(MemoryUser::Metadata, bytes);
        }
        Self { credit: Arc::clone(memory.credit()), bytes }
    }

    /// Takes memory for a value that queries can do without. Only unused values of its type are dropped for it, which take at
    /// most `bytes_max`.
    pub(crate) fn try_optional(
        memory: &Arc<MemoryBudget>,
        cache: &MetadataCache,
        of: TypeId,
        bytes: u64,
        bytes_max: u64,
    ) -> Option<Self> {
        if bytes > bytes_max {
            return None; // However many others are dropped.
        }
        loop {
            let over_bytes = cache.bytes_of(of).saturating_add(bytes).saturating_sub(bytes_max);
            let missing = match over_bytes {
                0 => match Self::try_new(memory, bytes) {
                    Ok(reservation) => return Some(reservation),
                    Err(missing) => missing.bytes,
                },
                over_bytes => over_bytes,
            };
            if cache.take_unused(Some(of), missing).is_empty() {
                return None;
            }
        }
    }
}

impl MetadataReservation {
    /// The bytes that are counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts the bytes of another reservation of the same manager as its own.
    pub fn add(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for MetadataReservation {
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        self.credit.give(MemoryUser::Metadata, self.bytes);
    }
}
