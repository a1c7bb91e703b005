//! Registering tables and files; the manager's report; the end of recording.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_core::log::RecordedManager;
use coscan_core::{ActiveBufferManager, ChunkSpec};

use super::handle::Driver;
use super::state::{State, Totals};
use crate::observe::metrics::ManagerReport;
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

    pub(crate) fn report(self: &Arc<Self>) -> ManagerReport {
        let slices = self.slices_of_all();
        let (state, usage) = self.call_then(
            |state, now| state.collect_credit(now), // What nobody holds is the pool's.
            |state, ()| (StateReport::of(state), self.memory.usage()),
        );
        ManagerReport {
            age: Duration::from_nanos(self.now().0),
            scans: state.scans,
            loads_in_flight: state.loads_in_flight,
            loads_started: state.totals.loads,
            chunks_delivered: state.totals.chunks_delivered,
            bytes_read: state.totals.bytes_read,
            bytes_delivered: state.totals.bytes_delivered,
            decisions: state.totals.decisions,
            decision_time: Duration::from_nanos(state.totals.decision_ns),
            chunks_in_use: state.chunks_in_use,
            slices_decoded: slices.decoded.load(Ordering::Relaxed),
            slices_reused: slices.reused.load(Ordering::Relaxed),
            pool_held_bytes: state.pool_held_bytes,
            pool_limit_bytes: state.pool_limit_bytes,
            decoded_bytes: usage.decoded_bytes,
            decoded_idle_bytes: self.decoded.idle_bytes(),
            operator_bytes: usage.operator_bytes,
            metadata_bytes: usage.metadata_bytes,
            held_bytes_max: self.memory.held_bytes_max(),
            memory_bytes: self.memory.budget_bytes(),
        }
    }

    /// Passes on the rest of the record and ends the recording.
    pub(crate) fn stop_recording(self: &Arc<Self>) {
        self.call(|state, _| {
            state.pass_on_record();
            state.stop_recording();
        });
    }
}

/// The part of a report that comes from the state.
struct StateReport {
    scans: usize,
    loads_in_flight: usize,
    chunks_in_use: usize,
    pool_held_bytes: u64,
    pool_limit_bytes: u64,
    totals: Totals,
}

impl StateReport {
    fn of(state: &State) -> Self {
        Self {
            scans: state.running(),
            loads_in_flight: state.core.loads_in_flight(),
            chunks_in_use: state.workers.chunks_in_use(),
            pool_held_bytes: state.core.state().held_bytes(),
            pool_limit_bytes: state.core.state().pool_bytes(),
            totals: state.totals,
        }
    }
}
