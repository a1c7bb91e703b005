//! Memory that a program takes beside its scans.

use std::any::{Any, TypeId};
use std::sync::Arc;

use crate::manager::BufferManager;
use crate::operator_memory::OperatorMemory;
use crate::tables::metadata_cache::CachedMetadata;
use crate::tables::metadata_reservation::MetadataReservation;

impl BufferManager {
    /// Takes memory for a value in a [cache slot](Self::cache_slot) that queries can do without. Unused values of the
    /// same type are dropped for it, least recently used first. All of them take at most one in `divisor` bytes of the budget.
    /// Returns `None` if there is no memory.
    #[must_use]
    pub fn metadata_memory<T: Any + Send + Sync>(
        &self,
        bytes: u64,
        divisor: u64,
    ) -> Option<MetadataReservation> {
        let (memory, cache) = (self.driver.memory(), self.driver.metadata_cache());
        let bytes_max = memory.budget_bytes() / divisor.max(1);
        MetadataReservation::try_optional(memory, cache, TypeId::of::<T>(), bytes, bytes_max)
    }

    /// The bytes of all values of a type in [cache slots](Self::cache_slot).
    #[must_use]
    pub fn metadata_bytes_of<T: Any + Send + Sync>(&self) -> u64 {
        self.driver.metadata_cache().bytes_of(TypeId::of::<T>())
    }

    /// Counts memory that is in use already as metadata, even beyond the budget, until the result is dropped.
    #[must_use]
    pub fn count_metadata(&self, bytes: u64) -> MetadataReservation {
        MetadataReservation::of_held(self.driver.memory(), bytes)
    }

    /// A place for metadata that can be made again. It is dropped when memory is short while it is not in use. A value
    /// is counted if it holds a [`MetadataReservation`].
    #[must_use]
    pub fn cache_slot<T: Any + Send + Sync>(&self) -> CachedMetadata<T> {
        CachedMetadata::new(self.driver.metadata_cache())
    }

    /// The part of the budget that operators of queries draw on.
    #[must_use]
    pub fn operator_memory(&self) -> OperatorMemory {
        OperatorMemory { driver: Arc::clone(&self.driver) }
    }

    /// Waits until [memory is short](Self::is_memory_short).
    pub async fn memory_shortage(&self) {
        self.driver.memory_shortage().await;
    }
}
