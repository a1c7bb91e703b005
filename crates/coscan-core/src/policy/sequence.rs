//! Scans that follow a fixed sequence through the table, as under `normal`, `attach` and `predictive`.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ChunkIndex, PageId, ScanId};
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Strictness};
use crate::scan::{Order, Scan};
use crate::state::State;

/// The start of each scan, and when it was last served.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    starts: BTreeMap<ScanId, ChunkIndex>,
    /// When the last load for each scan was started, as a count of loads.
    served: BTreeMap<ScanId, u64>,
    loads: u64,
}

impl Sequence {
    pub(super) fn start_at(&mut self, scan: ScanId, chunk: ChunkIndex) {
        self.starts.insert(scan, chunk);
    }

    pub(super) fn forget(&mut self, scan: ScanId) {
        self.starts.remove(&scan);
        self.served.remove(&scan);
    }

    /// The needed chunks of a scan in its sequence: from its start to the end, then from the first chunk.
    pub(super) fn remaining<'a>(
        &self,
        scan: &'a Scan,
    ) -> impl Iterator<Item = ChunkIndex> + use<'a> {
        let start = match scan.order() {
            Order::InOrder => None,
            Order::Any => self.starts.get(&scan.id()).copied(),
        };
        scan.needed().iter_around(start.unwrap_or_default())
    }

    /// The next chunk of the scan that has waited longest; if none waits, that of the scan that was served least
    /// recently. So requests queue as they do at a disk.
    pub(super) fn choose_load(&self, state: &State, attempt: &Attempt<'_>) -> Option<LoadPlan> {
        let load_candidates = state.scans().filter(|scan| attempt.admits(scan));
        let next = load_candidates.filter_map(|scan| Some((scan, self.next_cold(scan)?)));
        let (scan, chunk) = next.min_by_key(|(scan, _)| {
            let since = scan.waiting_since();
            (since.is_none(), since, self.served(scan.id()), scan.id())
        })?;
        Some(LoadPlan::of_missing(state, scan, chunk))
    }

    /// When a scan was served last, as a count of loads.
    pub(super) fn served(&self, scan: ScanId) -> u64 {
        self.served.get(&scan).copied().unwrap_or(0)
    }

    /// The next cold chunk of a scan, as far as it reads ahead.
    pub(super) fn next_cold(&self, scan: &Scan) -> Option<ChunkIndex> {
        self.ahead(scan).find(|&chunk| !scan.is_covered(chunk))
    }

    /// The chunks that are read before the scan asks for them.
    fn ahead<'a>(&self, scan: &'a Scan) -> impl Iterator<Item = ChunkIndex> + use<'a> {
        self.remaining(scan).take(scan.chunks_ahead().saturating_sub(scan.busy_workers()))
    }

    /// Least recently used pages, but none that was read ahead. Otherwise scans would read them again at once, and
    /// evict each other's pages forever.
    pub(super) fn choose_victims(
        &self,
        state: &State,
        request: &EvictionRequest<'_>,
    ) -> Vec<PageId> {
        let spared = self.spared(state, request);
        request.fill(state, state.cached_pages().filter(|id| !spared.contains(id)))
    }

    /// Pages read ahead that are not evicted.
    pub(super) fn spared(&self, state: &State, request: &EvictionRequest<'_>) -> BTreeSet<PageId> {
        let trigger = request.plan.map(|plan| plan.scan);
        let spared_scans = state.scans().filter(|scan| match request.strictness {
            Strictness::Strict => true,
            Strictness::MayStarve => Some(scan.id()) == trigger,
            Strictness::MayEvictOwn => false,
        });
        spared_scans
            .flat_map(|scan| {
                let pages = |chunk| state.pages_of(scan, chunk);
                self.ahead(scan).flat_map(pages)
            })
            .collect()
    }

    pub(super) fn on_load_started(&mut self, plan: &LoadPlan) {
        self.loads += 1;
        self.served.insert(plan.scan, self.loads);
    }

    /// The next chunk in the sequence of a scan, once it is available.
    pub(super) fn choose_delivery(&self, state: &State, scan: ScanId) -> Option<ChunkIndex> {
        let scan = state.scan(scan)?;
        self.remaining(scan).next().filter(|&chunk| scan.is_available(chunk))
    }
}
