//! The registration of tables and files, and the end of recording.

use std::sync::Arc;

use coscan_core::log::RecordedManager;
use coscan_core::{ActiveBufferManager, ChunkSpec};

use super::handle::Driver;
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::registry::Registry;

impl Driver {
    /// Registers a table or a file; `None` if the manager has panicked, which loses all registrations.
    pub(crate) fn registering<R>(
        self: &Arc<Self>,
        register: impl FnOnce(&mut Registry, &mut RecordedManager) -> R,
    ) -> Option<R> {
        self.call(|state, _| {
            (!state.is_broken()).then(|| register(&mut state.registry, &mut state.core))
        })
    }

    /// Counts the memory that core needs for this number of pages, as long as the result is held. Not to be called
    /// under the lock, which this may take.
    pub(crate) fn reserve_for_pages(&self, pages: usize) -> MetadataReservation {
        let bytes = ActiveBufferManager::memory_bytes_for_pages(pages);
        MetadataReservation::of_held(&self.memory, bytes)
    }

    /// Counts the memory that core needs for these chunks, as long as the result is held. Not to be called under the
    /// lock, which this may take.
    pub(crate) fn reserve_for_chunks(&self, chunks: &[ChunkSpec]) -> MetadataReservation {
        let bytes = ActiveBufferManager::memory_bytes_for_chunks(chunks);
        MetadataReservation::of_held(&self.memory, bytes)
    }

    /// Passes on the rest of the record and ends the recording.
    pub(crate) fn stop_recording(self: &Arc<Self>) {
        self.call(|state, _| {
            state.pass_on_record();
            state.stop_recording();
        });
    }
}
