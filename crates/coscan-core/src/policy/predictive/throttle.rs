//! Throttling: scans are held back a little, so that those behind them still find their pages in the pool [CS11 §8.2.4].

use std::collections::BTreeMap;

use crate::ids::{ChunkIndex, ScanId, Time};
use crate::policy::next_use::NextUseIndex;
use crate::scan::Scan;
use crate::state::State;

/// A scan is held back for at most one part in this many of its running time.
const TIME_DIVISOR: u64 = 4;

/// A scan that is further behind than this many times the horizon of the pool will not catch up.
const REACH: u64 = 4;

/// The scans that are held back, and for how long already.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttle {
    /// The horizon of the pool: nanoseconds to the next use of evicted pages, smoothed. `None` until a needed page was
    /// evicted.
    horizon_ns: Option<u64>,
    scans: BTreeMap<ScanId, HeldBack>,
}

#[derive(Clone, Copy, Debug)]
struct HeldBack {
    started: Time,
    since: Option<Time>,
    ns: u64,
}

impl Throttle {
    pub(super) fn add(&mut self, now: Time, scan: ScanId) {
        self.scans.insert(scan, HeldBack { started: now, since: None, ns: 0 });
    }

    pub(super) fn remove(&mut self, scan: ScanId) {
        self.scans.remove(&scan);
    }

    /// Notes that a page is evicted that would be used in `ns` nanoseconds.
    pub(super) fn evicted(&mut self, ns: u64) {
        self.horizon_ns =
            Some(self.horizon_ns.map_or(ns, |known| (known / 8 * 7).saturating_add(ns / 8)));
    }

    /// Notes that a load for a scan was started: it is not held back any more.
    pub(super) fn served(&mut self, now: Time, scan: ScanId) {
        if let Some(held) = self.scans.get_mut(&scan)
            && let Some(since) = held.since.take()
        {
            held.ns += now.since(since);
        }
    }

    /// Whether a scan is held back while loads for others are possible. This holds if the pages that it read last are
    /// evicted before the next scan uses them, and would not be if that scan were closer.
    pub(super) fn holds_back(
        &mut self,
        state: &State,
        next_use_index: &NextUseIndex,
        scan: &Scan,
    ) -> bool {
        let Some(held) = self.scans.get_mut(&scan.id()) else { return false };
        let now = state.now();
        let held_ns = held.ns + held.since.map_or(0, |since| now.since(since));
        if held_ns > now.since(held.started) / TIME_DIVISOR {
            return false;
        }
        let Some(horizon_ns) = self.horizon_ns else { return false };
        let Some(behind_ns) = nearest_behind(state, next_use_index, scan) else { return false };
        let holds_back = (horizon_ns..horizon_ns.saturating_mul(REACH)).contains(&behind_ns);
        if holds_back && held.since.is_none() {
            held.since = Some(now);
        }
        holds_back
    }
}

/// Nanoseconds until another scan uses the chunk before the next one of this scan.
fn nearest_behind(state: &State, next_use_index: &NextUseIndex, scan: &Scan) -> Option<u64> {
    let before = ChunkIndex(scan.needed().first()?.0.checked_sub(1)?);
    let behind = state.scans_of(scan.table()).filter(|other| {
        other.id() != scan.id()
            && other.needed().contains(before)
            && other.groups().intersects(scan.groups())
    });
    behind.filter_map(|other| next_use_index.ns_to(state, other, before)).min()
}
