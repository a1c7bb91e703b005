//! Loads: the policy proposes, the state machine makes space. Scans that found none are served by [`super::space`] (I4, I5).

use std::collections::BTreeSet;

use super::ActiveBufferManager;
use super::space::{RELAXED, SpacePhase};
use crate::action::Action;
use crate::ids::{DeviceId, LoadId, PageId, ScanId};
use crate::pages::{Residency, Source};
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Strictness};
use crate::scan::{PriorityClass, Scan};
use crate::slots::{LoadSlots, loads_by_device};
use crate::state::{Load, LoadOrigin};

/// Loads that a decision proposes without finding space for them: the bound on its cost. Scans of lower rank are
/// proposed as soon as space comes free, or once their waiting has raised their rank.
const REFUSED_MAX: usize = 8;

impl ActiveBufferManager {
    /// Starts the load of the highest rank that fits. Returns true if one was started, or a scan was told that there is
    /// no space.
    pub(super) fn start_load(&mut self) -> bool {
        self.space_deadline = None;
        let lacked_space = std::mem::take(&mut self.lacks_space);
        self.victim_bytes_max = [None; 2];
        if self.start_nearby_load(lacked_space) {
            return true;
        }
        let bounds = self.policy.priority_bounds(&self.state);
        let mut slots = LoadSlots::new(&self.state, self.config.loads_in_flight_max, bounds);
        if slots.are_closed(self.state.devices()) {
            return false;
        }
        let open = slots.clone();
        let mut kept = BTreeSet::new();
        self.start_ranked_load(&mut slots, &mut kept) || self.answer_remote(&open, &kept)
    }

    /// Starts a load by rank. Notes in `kept` the devices for which space that comes free is kept for a scan.
    fn start_ranked_load(&mut self, slots: &mut LoadSlots, kept: &mut BTreeSet<DeviceId>) -> bool {
        let mut without_space = BTreeSet::new();
        while without_space.len() < REFUSED_MAX
            && let Some(plan) = self.propose(Strictness::Strict, &without_space, slots)
        {
            if self.try_load(&plan, Strictness::Strict) {
                return true;
            }
            let scan = &self.state.scans[&plan.scan];
            if scan.is_remote() {
                without_space.insert(plan.scan);
                continue;
            }
            let phase = self.space_phase(plan.scan);
            if phase != SpacePhase::Timeout {
                // Loads in flight from its device end first: the deliveries that follow may free some space.
                let device = scan.device;
                kept.insert(device);
                let takes_slot = |load: &Load| load.device == device && load.takes_slot();
                if self.state.loads.values().any(takes_slot) {
                    slots.close(device);
                    continue;
                }
                if RELAXED.into_iter().any(|strictness| self.try_load(&plan, strictness)) {
                    return true;
                }
            }
            self.lacks_space = true;
            if let SpacePhase::Reserved { until } = phase {
                self.space_deadline = Some(until);
                return false;
            }
            without_space.insert(plan.scan);
        }
        slots.close_busy(&self.state);
        self.may_relax(slots)
            && RELAXED.into_iter().any(|strictness| self.try_loads(strictness, slots))
    }

    /// Starts a load for a scan that reads for another server and may take a slot, or tells it that there is no space.
    /// Called after no load could be started. Such a scan never waits for space, whatever ranks before it, since the
    /// other server may be waiting for that very space. Nor does it take space that is kept for a scan: further such
    /// scans would take all of it.
    fn answer_remote(&mut self, open: &LoadSlots, kept: &BTreeSet<DeviceId>) -> bool {
        let Some(scan) = self.next_remote(open) else { return false };
        let id = scan.id();
        let chunk = scan.loadable().next().filter(|_| !kept.contains(&scan.device));
        let plan = chunk.map(|chunk| LoadPlan::of_missing(&self.state, scan, chunk));
        if !plan.is_some_and(|plan| self.try_load(&plan, Strictness::Strict)) {
            self.state.change_scan(id, Scan::fail).expect("it was looked up above");
            self.actions.push_back(Action::NoSpace { scan: id });
        }
        true
    }

    /// A scan that reads for another server and may take a slot.
    fn next_remote(&self, open: &LoadSlots) -> Option<&Scan> {
        let candidates = &self.state.scan_index.remote_candidates;
        let of_device = |device| {
            candidates.range((device, ScanId(0))..=(device, ScanId(u32::MAX))).take(REFUSED_MAX)
        };
        let scans = self.state.devices().flat_map(of_device);
        scans.filter_map(|&(_, id)| self.state.scan(id)).find(|scan| open.admit(scan))
    }

    /// Starts a load of pages in the pools of other servers, which takes no slot of a device. Returns true if one was
    /// started.
    fn start_nearby_load(&mut self, lacked_space: bool) -> bool {
        // Space that is kept for a scan is not used for these loads.
        let waiting = self.state.scan_index.waiting.iter().take(REFUSED_MAX);
        let mut phases = waiting.map(|&(_, scan)| self.space_phase(scan));
        if self.state.scan_index.nearby_candidates.is_empty()
            || lacked_space && phases.any(|phase| phase != SpacePhase::Timeout)
        {
            return false;
        }
        let candidates = self.state.scan_index.nearby_candidates.iter().take(REFUSED_MAX);
        let candidates: Vec<_> = candidates.map(|&(_, scan)| scan).collect();
        candidates.into_iter().any(|scan| {
            let plan = self.policy.choose_nearby_load(&self.state, scan);
            plan.is_some_and(|plan| self.try_load(&plan, Strictness::Strict))
        })
    }

    /// The load that the policy chooses next.
    fn propose(
        &mut self,
        strictness: Strictness,
        without_space: &BTreeSet<ScanId>,
        slots: &LoadSlots,
    ) -> Option<LoadPlan> {
        self.policy.choose_load(&self.state, &Attempt { strictness, without_space, slots })
    }

    /// Starts the load of the highest rank that fits with victims of this strictness. Returns true if one was started.
    fn try_loads(&mut self, strictness: Strictness, slots: &LoadSlots) -> bool {
        let mut without_space = BTreeSet::new();
        while let Some(plan) = self.propose(strictness, &without_space, slots) {
            if self.try_load(&plan, strictness) {
                return true;
            }
            without_space.insert(plan.scan);
        }
        false
    }

    /// Starts a load if it fits; if it does not fit whole, the part that its own scan needs.
    fn try_load(&mut self, plan: &LoadPlan, strictness: Strictness) -> bool {
        let relaxed = strictness > Strictness::Strict;
        let scan = self.state.scan(plan.scan).expect("a load is for a running scan");
        if relaxed && self.waits_for_data_since(plan.scan).is_none() {
            return false; // A relaxed load has to end in a delivery, or scans could evict each other's pages forever.
        }
        let mut own_part = plan.clone();
        own_part
            .pages
            .retain(|&id| self.state.chunks_read(scan, id).any(|chunk| chunk == plan.chunk));
        assert!(!own_part.pages.is_empty(), "I4: a load reads something for its scan");
        // Pages for other scans are read too where they fit, but no needed page is evicted for them.
        let tries_whole = !relaxed && own_part.pages.len() < plan.pages.len();
        let tries = tries_whole.then_some(plan).into_iter().chain([&own_part]);
        for plan in tries {
            if let Some(victims) = self.find_space(plan, strictness) {
                self.evict(victims);
                self.begin_load(plan);
                return true;
            }
        }
        false
    }

    /// The pages to evict so that a load fits; `None` if they are not enough.
    fn find_space(&mut self, plan: &LoadPlan, strictness: Strictness) -> Option<Vec<PageId>> {
        let load_bytes: u64 = plan.pages.iter().map(|&id| self.state.bytes_of(id)).sum();
        let bytes = (self.state.held_bytes() + load_bytes).saturating_sub(self.state.pool_bytes());
        if bytes == 0 {
            return Some(Vec::new());
        }
        if strictness == Strictness::Strict && !self.may_find(plan.scan, bytes) {
            return None;
        }
        let request = EvictionRequest { plan: Some(plan), bytes, strictness };
        let victims = self.choose_victims(&request);
        let freed: u64 = victims.iter().map(|&id| self.state.bytes_of(id)).sum();
        (freed >= bytes).then_some(victims)
    }

    /// Whether there may be `bytes` of victims for a scan. One search answers for all scans that wait, and one for all
    /// others.
    fn may_find(&mut self, scan: ScanId, bytes: u64) -> bool {
        let waits = self.state.scan(scan).is_some_and(|scan| scan.starving_since().is_some());
        let known = self.victim_bytes_max[usize::from(waits)];
        let (max, _) =
            known.filter(|&(max, enough)| bytes <= max || max < enough).unwrap_or_else(|| {
                self.report_changed_tables();
                let found = (self.policy.victim_bytes_max(&self.state, waits, bytes), bytes);
                self.victim_bytes_max[usize::from(waits)] = Some(found);
                found
            });
        bytes <= max
    }

    fn begin_load(&mut self, plan: &LoadPlan) {
        let scan = self.state.scan(plan.scan).expect("a load is for a running scan");
        let (table, device) = (scan.table, scan.device);
        let source = |&id: &PageId| self.state.page(id).source;
        // A server that asked this one is never told to ask another.
        let may_ask = |id: &&PageId| !scan.is_remote() && source(id) != Source::Device;
        let from_peers: Vec<_> = plan.pages.iter().filter(may_ask).copied().collect();
        let origin = match from_peers.is_empty() {
            true => LoadOrigin::Device,
            false if plan.pages.iter().all(|id| source(id) == Source::PeerPool) => {
                LoadOrigin::PeerPools
            }
            false => LoadOrigin::Peers,
        };
        let mut held = self.state.pages_of(scan, plan.chunk);
        let for_others: Vec<_> =
            plan.pages.iter().filter(|id| !held.contains(id)).copied().collect();
        held.extend(for_others);
        let load = LoadId(self.next_load);
        self.next_load += 1;
        for &id in &plan.pages {
            self.state.move_page(id, Residency::Reading);
            self.state.set_read_for(id, Some(plan.scan));
        }
        for &id in &held {
            self.state.pin(id);
        }
        let under_way = loads_by_device(&self.state).remove(&device).unwrap_or_default();
        let urgent = under_way.admit_urgent(self.config.loads_in_flight_max)
            && self.priority_of(plan.scan) == PriorityClass::Tiny;
        let record = Load {
            table,
            device,
            origin,
            from_peers,
            scan: plan.scan,
            chunk: plan.chunk,
            unreported: plan.pages.clone(),
            held,
            started: self.state.now,
            urgent,
        };
        self.state.tables.get_mut(&table).expect("a scan's table stays registered").last_load =
            Some(plan.chunk);
        self.state.loads.insert(load, record);
        if origin == LoadOrigin::PeerPools {
            self.state.change_scan(plan.scan, |scan| scan.nearby_loads += 1);
        }
        self.policy.on_load_started(&self.state, plan);
        self.actions.push_back(Action::Load {
            load,
            scan: plan.scan,
            table,
            chunk: plan.chunk,
            pages: plan.pages.clone(),
            urgent,
        });
    }
}
