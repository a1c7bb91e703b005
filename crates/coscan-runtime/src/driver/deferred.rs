//! Actions deferred until the lock is released, because they take other locks or time.

use bytes::Bytes;
use coscan_core::{ScanId, Time};

use crate::lease::Lease;
use crate::load::Load;

#[derive(Debug, Default)]
pub(super) struct DeferredActions {
    pub(super) loads: Vec<Load>,
    pub(super) timer: Option<Time>,
    /// Pages to be dropped.
    pub(super) evicted: Vec<Bytes>,
    /// Leases to be dropped: their workers are gone.
    pub(super) unclaimed: Vec<Lease>,
    /// Scans that have failed: what they need is to be dropped.
    pub(super) failed: Vec<ScanId>,
    /// A scan needs less than before: decoded columns may be unneeded.
    pub(super) needs_dropped: bool,
}

impl DeferredActions {
    pub(super) fn is_empty(&self) -> bool {
        let Self { loads, timer, evicted, unclaimed, failed, needs_dropped } = self;
        let is_nothing_dropped = evicted.is_empty() && unclaimed.is_empty() && !needs_dropped;
        loads.is_empty() && timer.is_none() && failed.is_empty() && is_nothing_dropped
    }
}
