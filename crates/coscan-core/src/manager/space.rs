//! Space for a load when the rest of the pool is in use, or needed by others (I5). A scan gets it in three steps:
//!
//! 1. *timeout*: for [`Config::space_timeout_ns`](crate::Config::space_timeout_ns) it waits, as busy workers may free
//!    some;
//! 2. *reservation*: then all that comes free is kept for it, and nothing is read from its device for scans that rank
//!    behind it. Workers that hold pages may wait for one of those scans, so times of reservation and of yielding
//!    alternate, each twice as long as the one before: one of them outlasts every chunk in use;
//! 3. *relaxation*: victims are chosen less strictly.

use super::ActiveBufferManager;
use crate::ids::{ScanId, Time};
use crate::policy::Strictness;
use crate::slots::LoadSlots;

/// Slip 7 in `docs/papers.md`: with few free slots the exclusions are relaxed one by one, or no scan would proceed.
pub(super) const RELAXED: [Strictness; 2] = [Strictness::MayStarve, Strictness::MayEvictOwn];

/// Phases after the timeout that are skipped while workers are held back from processors. Those workers proceed soon,
/// and evicting their chunks for a scan that is then held back itself could repeat without end. Later phases are not
/// skipped, since under heavy load some worker is always held back.
const PHASES_FOR_HELD_BACK: u32 = 2;

/// The step that a scan that waits for space is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SpacePhase {
    /// Within its timeout.
    Timeout,
    /// Space that comes free is kept for it until then.
    Reserved { until: Time },
    /// Past its timeout, but others may pass.
    Yielding,
}

impl ActiveBufferManager {
    /// The phase of a scan that found no space.
    pub(super) fn space_phase(&self, scan: ScanId) -> SpacePhase {
        let Some(since) = self.waits_for_data_since(scan) else { return SpacePhase::Timeout };
        let timeout_ns = self.config.space_timeout_ns.max(1);
        let waited_timeouts = self.state.now.since(since) / timeout_ns;
        let Some(phase) = waited_timeouts.checked_ilog2() else { return SpacePhase::Timeout };
        if self.recheck_held_back.is_some() && phase < PHASES_FOR_HELD_BACK {
            return SpacePhase::Timeout;
        }
        if !phase.is_multiple_of(2) {
            return SpacePhase::Yielding;
        }
        let end_ns = timeout_ns.saturating_mul(2u64.saturating_pow(phase + 1));
        SpacePhase::Reserved { until: Time(since.0.saturating_add(end_ns)) }
    }

    /// Whether victims may be chosen less strictly for any scan, because one waits for space and nothing will free some
    /// soon. If something may, sets the deadline to the end of the scan's timeout. `slots` are closed where loads are
    /// in flight.
    pub(super) fn may_relax(&mut self, slots: &LoadSlots) -> bool {
        if self.recheck_held_back.is_some() || slots.are_closed(self.state.devices()) {
            return false;
        }
        let waiting = self.state.scan_index.waiting.iter();
        let scans = waiting.filter_map(|&(_, id)| self.state.scan(id));
        let admitted = scans.filter(|scan| slots.admit(scan));
        let mut ends = admitted.filter_map(|scan| self.space_timeout_end(scan.id()));
        let Some(end) = ends.next() else { return false };
        if end <= self.state.now || self.state.is_idle() {
            return true;
        }
        self.space_deadline = Some(end);
        false
    }

    /// The end of the timeout of a scan that waits.
    fn space_timeout_end(&self, scan: ScanId) -> Option<Time> {
        let since = self.waits_for_data_since(scan)?;
        Some(Time(since.0.saturating_add(self.config.space_timeout_ns)))
    }

    /// The time since which a scan has waited that cannot proceed before something is read for it.
    pub(super) fn waits_for_data_since(&self, scan: ScanId) -> Option<Time> {
        let scan = self.state.scan(scan)?;
        if self.policy.schedules_workers() { scan.starving_since() } else { scan.waiting_since() }
    }
}
