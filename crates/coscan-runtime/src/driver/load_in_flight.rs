//! A load in flight, and its remaining pages.

use std::sync::Arc;

use coscan_core::ChunkIndex;

use crate::io::load::Urgency;
use crate::observe::metrics::ScanCounters;
use crate::scans::parts::ScanParts;

/// A load that has not ended.
#[derive(Debug)]
pub(super) struct LoadInFlight {
    pub(super) urgency: Urgency,
    pub(super) chunk: ChunkIndex,
    /// The parts of the scan that it was decided for.
    pub(super) parts: Arc<ScanParts>,
    pub(super) counters: Arc<ScanCounters>,
    /// The number of pages that were not reported yet.
    pub(super) missing: usize,
    pub(super) failed: usize,
}
