//! Scans that are held back a little, so that those behind them find in the pool what was read for them [CS11 §8.2.4].

use std::collections::BTreeMap;

use crate::ids::{ChunkIndex, ScanId, Time};
use crate::policy::next_use::NextUseIndex;
use crate::scan::Scan;
use crate::state::State;

/// A scan is not held back for a longer part of the time for which it runs than one in so many.
const PART: u64 = 4;

/// Whoever is further behind than so many times what the pool keeps will not catch up.
const REACH: u64 = 4;

/// Who is held back, and for how long already.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttle {
    /// How far ahead the next use of evicted pages lies, in nanoseconds, smoothed: what the pool does not keep. `None`
    /// until a page that is wanted was evicted.
    horizon_ns: Option<u64>,
    scans: BTreeMap<ScanId, Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    started: Time,
    since: Option<Time>,
    ns: u64,
}

impl Throttle {
    pub(super) fn add(&mut self, now: Time, scan: ScanId) {
        self.scans.insert(scan, Held { started: now, since: None, ns: 0 });
    }

    pub(super) fn remove(&mut self, scan: ScanId) {
        self.scans.remove(&scan);
    }

    /// A page is evicted, the next use of which lies so far ahead.
    pub(super) fn evicted(&mut self, ns: u64) {
        self.horizon_ns =
            Some(self.horizon_ns.map_or(ns, |known| (known / 8 * 7).saturating_add(ns / 8)));
    }

    /// Something is read for a scan: it is not held back any more.
    pub(super) fn served(&mut self, now: Time, scan: ScanId) {
        if let Some(held) = self.scans.get_mut(&scan)
            && let Some(since) = held.since.take()
        {
            held.ns += now.since(since);
        }
    }

    /// Whether nothing is read for a scan for now, as long as something can be read for others: what it read last is
    /// evicted before the next scan comes to it, and would not be if that one came closer.
    pub(super) fn holds(
        &mut self,
        state: &State,
        next_use_index: &NextUseIndex,
        scan: &Scan,
    ) -> bool {
        let Some(held) = self.scans.get_mut(&scan.id()) else { return false };
        let now = state.now();
        let held_ns = held.ns + held.since.map_or(0, |since| now.since(since));
        if held_ns > now.since(held.started) / PART {
            return false;
        }
        let Some(horizon_ns) = self.horizon_ns else { return false };
        let Some(behind_ns) = nearest_behind(state, next_use_index, scan) else { return false };
        let holds = (horizon_ns..horizon_ns.saturating_mul(REACH)).contains(&behind_ns);
        if holds && held.since.is_none() {
            held.since = Some(now);
        }
        holds
    }
}

/// Nanoseconds until another scan comes to the chunk before the next one of this scan.
fn nearest_behind(state: &State, next_use_index: &NextUseIndex, scan: &Scan) -> Option<u64> {
    let before = ChunkIndex(scan.needed().first()?.0.checked_sub(1)?);
    let behind = state.scans_of(scan.table()).filter(|other| {
        other.id() != scan.id()
            && other.needed().contains(before)
            && other.groups().intersects(scan.groups())
    });
    behind.filter_map(|other| next_use_index.ns_to(state, other, before)).min()
}
