//! Leases of chunks: core hands a chunk to a worker, which releases or returns it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coscan_core::{ChunkIndex, ScanId, WorkerIndex};

use super::handle::Driver;
use super::inner::Inner;
use crate::decode_cache::SliceKey;
use crate::lease::{Lease, LeaseOwner, OnDrop};

impl Driver {
    pub(super) fn lease(
        self: &Arc<Self>,
        inner: &Inner,
        scan: ScanId,
        worker: WorkerIndex,
        chunk: ChunkIndex,
    ) -> Lease {
        let registered = inner.core.state().scan(scan).expect("core delivers to running scans");
        let running = &inner.scans[&scan];
        let pages = inner.core.state().pages_of(registered, chunk).into_iter();
        let mut pages: Vec<_> = pages.map(|page| (page, inner.frames[&page].clone())).collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        running.activity.set_priority(inner.core.class_of(scan));
        let chunk_ns = registered.chunk_ns().map(|ns| ns as f64);
        let chunk_ns = chunk_ns.or_else(|| inner.core.state().average_chunk_ns()).unwrap_or(1.0);
        running.activity.set_work_left_ns((registered.needed().len() as f64 * chunk_ns) as u64);
        running.activity.handed(worker, self.now());
        let lease = Lease {
            owner: Arc::clone(self) as _,
            untaken: running.parts.shared(chunk),
            scan,
            worker,
            chunk,
            pages,
            runnable: Some(self.cpu_scheduler.add(Arc::clone(&running.activity), worker)),
            on_drop: OnDrop::Return,
        };
        for &key in &lease.untaken {
            self.decoded.expect(key);
        }
        self.leases.fetch_add(1, Ordering::Relaxed);
        lease
    }

    /// A worker stops, or cannot open the chunk that it was handed: the chunk returns to its scan.
    pub(crate) fn withdraw(self: &Arc<Self>, scan: ScanId, worker: WorkerIndex) {
        self.command(|inner, now| inner.withdraw(now, scan, worker));
    }
}

impl LeaseOwner for Driver {
    /// The last worker to take a slice that no scan needs any more drops it.
    fn slice_taken(&self, key: SliceKey) {
        if self.decoded.taken(key) {
            self.drop_unneeded(&[key]);
        }
    }

    fn lease_ended(self: Arc<Self>, scan: ScanId, worker: WorkerIndex, on_drop: OnDrop) {
        self.leases.fetch_sub(1, Ordering::Relaxed);
        match on_drop {
            OnDrop::Return => self.withdraw(scan, worker),
            OnDrop::Release => {
                self.command(|inner, now| inner.core.release_chunk(now, scan, worker));
            }
            OnDrop::Nothing => {}
        }
    }
}
