//! Commands on all but scans: tables and files come and go, reports.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_core::Time;
use coscan_core::log::RecordedManager;

use super::handle::Driver;
use crate::metrics::ManagerReport;
use crate::registry::Registry;

impl Driver {
    /// Registers a table or a file; `None` if the manager has panicked: then all registrations are lost.
    pub(crate) fn registering<R>(
        self: &Arc<Self>,
        register: impl FnOnce(&mut Registry, &mut RecordedManager) -> R,
    ) -> Option<R> {
        self.command(|inner, _| {
            inner.check().ok().map(|()| register(&mut inner.registry, &mut inner.core))
        })
    }

    /// A table or a file has one holder less.
    pub(crate) fn unregistering(
        self: &Arc<Self>,
        release: impl FnOnce(&mut Registry, &mut RecordedManager, Time),
    ) {
        self.command(|inner, now| {
            if inner.check().is_ok() {
                release(&mut inner.registry, &mut inner.core, now);
            }
        });
    }

    pub(crate) fn report(&self) -> ManagerReport {
        let usage = self.memory.usage();
        let slices = self.slices_of_all();
        let inner = self.lock();
        let totals = inner.totals;
        ManagerReport {
            age: Duration::from_nanos(self.now().0),
            scans: inner.scans.len(),
            loads_in_flight: inner.core.loads_in_flight(),
            loads_started: totals.loads,
            chunks_delivered: totals.chunks_delivered,
            bytes_read: totals.bytes_read,
            bytes_delivered: totals.bytes_delivered,
            decisions: totals.decisions,
            decision_time: Duration::from_nanos(totals.decision_ns),
            chunks_in_use: self.leases.load(Ordering::Relaxed),
            slices_decoded: slices.decoded.load(Ordering::Relaxed),
            slices_reused: slices.reused.load(Ordering::Relaxed),
            pool_held_bytes: inner.core.state().held_bytes(),
            pool_limit_bytes: inner.core.state().pool_bytes(),
            decoded_bytes: usage.decoded_bytes,
            operator_bytes: usage.operator_bytes,
            metadata_bytes: usage.metadata_bytes,
            held_bytes_max: self.memory.held_bytes_max(),
            memory_bytes: self.memory.budget_bytes(),
        }
    }

    /// Passes on the rest of the record and ends it.
    pub(crate) fn stop_recording(&self) {
        let mut inner = self.lock();
        inner.pass_on_record();
        inner.stop_recording();
    }
}
