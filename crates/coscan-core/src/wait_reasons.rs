//! The reasons why scans wait, for people who ask.

use crate::ids::{ChunkIndex, LoadId, ScanId, Time};
use crate::manager::ActiveBufferManager;
use crate::scan::{Order, Scan};
use crate::slots::loads_by_device;

/// The event or resource that a scan waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// A page of a chunk that it needs is being read.
    Load {
        /// The oldest load that reads such a page.
        load: LoadId,
        /// The chunk.
        chunk: ChunkIndex,
        /// Running scans that need that page, this one among them.
        scans: usize,
    },
    /// The most loads that are allowed are in flight from its device, all for other scans.
    Device {
        /// The number of those loads.
        loads: usize,
    },
    /// The pool has no space for its largest chunk.
    Space,
    /// A chunk is ready, but the processors can use no more workers.
    Processor {
        /// The ready chunk.
        chunk: ChunkIndex,
    },
    /// The policy serves others first.
    Turn,
}

/// A scan that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// When the worker that has waited longest asked.
    pub since: Time,
    /// The reason.
    pub on: WaitsFor,
}

impl ActiveBufferManager {
    /// The wait of the worker of a scan that has waited longest; `None` if none waits, or the scan does not run.
    #[must_use]
    pub fn wait_of(&self, scan: ScanId) -> Option<Wait> {
        let scan = self.state().scan(scan).filter(|scan| !scan.needed().is_empty())?;
        Some(Wait { since: scan.waiting_since()?, on: self.waits_for(scan) })
    }

    fn waits_for(&self, scan: &Scan) -> WaitsFor {
        if let Some(chunk) = scan.deliverable().next() {
            let is_held_back = self.schedules_workers();
            return if is_held_back { WaitsFor::Processor { chunk } } else { WaitsFor::Turn };
        }
        let state = self.state();
        if let Some(load) = self.load_for(scan) {
            return load;
        }
        let loads = loads_by_device(state).remove(&scan.device()).unwrap_or_default();
        if loads.usual >= self.config().loads_in_flight_max {
            return WaitsFor::Device { loads: loads.usual + loads.urgent };
        }
        match state.held_bytes().saturating_add(scan.chunk_bytes_max) > state.pool_bytes() {
            true => WaitsFor::Space,
            false => WaitsFor::Turn,
        }
    }

    /// The oldest load of a page that lets the scan proceed; in order, only a page of its next chunk does.
    fn load_for(&self, scan: &Scan) -> Option<WaitsFor> {
        let state = self.state();
        let next = scan.needed().first();
        state.loads.iter().find_map(|(&load, record)| {
            record.unreported.iter().find_map(|&page| {
                let mut chunks = state.chunks_read(scan, page);
                let chunk = chunks.find(|&chunk| match scan.order() {
                    Order::Any => scan.needed().contains(chunk),
                    Order::InOrder => next == Some(chunk),
                })?;
                Some(WaitsFor::Load { load, chunk, scans: state.readers(page).len() })
            })
        })
    }
}
