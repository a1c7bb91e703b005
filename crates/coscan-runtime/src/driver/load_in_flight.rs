//! A load in flight, and what is left of it.

use std::sync::Arc;

use coscan_core::ChunkIndex;

use crate::io::load::Urgency;
use crate::observe::metrics::ScanCounters;
use crate::scans::parts::ScanParts;

/// A load that is not over.
#[derive(Debug)]
pub(super) struct LoadInFlight {
    pub(super) urgency: Urgency,
    pub(super) chunk: ChunkIndex,
    /// Of what it was decided for.
    pub(super) parts: Arc<ScanParts>,
    pub(super) counters: Arc<ScanCounters>,
    /// Pages that were not reported yet.
    pub(super) missing: usize,
    pub(super) failed: usize,
}
