//! Loads: the policy proposes, the state machine finds room and sees to it that whoever waits gets some (I4, I5).

use std::collections::BTreeSet;

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{LoadId, PageId, ScanId, Time};
use crate::pages::Place;
use crate::policy::{Attempt, EvictionRequest, LoadPlan, Strictness};
use crate::scan::{Order, PriorityClass, Scan};
use crate::slots::{Slots, loading};
use crate::state::Load;

/// Slip 7 in `docs/papers.md`: with few free slots the exclusions are relaxed one by one, or nobody would go on.
const RELAXED: [Strictness; 2] = [Strictness::MayStarve, Strictness::MayEvictOwn];

/// Turns of a scan that waits for room, see `reservation_for`, in which it spares those that wait for processors only.
const HELD_BACK_TURNS: u32 = 2;

/// What a scan that has waited too long for room is due.
struct SpaceReservation {
    /// Until when nobody else is served; `None` while others may pass.
    end: Option<Time>,
}

impl ActiveBufferManager {
    /// Starts the load that the policy wants most and that fits. True if one was started.
    pub(super) fn start_load(&mut self) -> bool {
        self.deadline = None;
        let urgent = || self.tiny_scans().map(Scan::id).collect();
        let mut slots = Slots::new(&self.state, self.config.loads_in_flight_max, urgent);
        if slots.are_closed(self.state.devices()) {
            return false;
        }
        let mut without_room = BTreeSet::new();
        while let Some(plan) = self.propose(Strictness::Strict, &without_room, &slots) {
            if self.try_load(&plan, Strictness::Strict) {
                return true;
            }
            if let Some(hold) = self.reservation_for(plan.scan) {
                // I5: nobody is served before a scan that has waited too long for room. What is being read from its
                // device comes first: it may be what frees some.
                let device = self.state.scans[&plan.scan].device;
                if self.state.loads.values().any(|load| load.device == device) {
                    slots.close(device);
                    continue;
                }
                if RELAXED.into_iter().any(|strictness| self.try_load(&plan, strictness)) {
                    return true;
                }
                if let Some(end) = hold.end {
                    self.deadline = Some(end);
                    return false;
                }
            }
            without_room.insert(plan.scan);
        }
        slots.close_busy(&self.state);
        self.may_relax(&slots)
            && RELAXED.into_iter().any(|strictness| self.try_relaxed(strictness, &slots))
    }

    /// Makes loads urgent that an urgent scan waits for, though they are for others.
    pub(super) fn escalate_loads(&mut self) {
        if self.state.scan_index.waiting.is_empty()
            || self.state.loads.values().all(|load| load.urgent)
        {
            return;
        }
        let starving = |scan: &&Scan| scan.starving_since().is_some();
        let waiting: Vec<_> = self.tiny_scans().filter(starving).collect();
        if waiting.is_empty() {
            return;
        }
        let next = |scan: &Scan, chunk| {
            scan.needed().contains(chunk)
                && (scan.order() == Order::Any || scan.needed().first() == Some(chunk))
        };
        let awaited = |load: &Load| {
            waiting.iter().any(|scan| {
                let pages = load.unreported.iter();
                let mut chunks = pages.flat_map(|&page| self.state.chunks_read(scan, page));
                chunks.any(|chunk| next(scan, chunk))
            })
        };
        let usual = self.state.loads.iter().filter(|(_, load)| !load.urgent);
        let awaited: Vec<_> = usual.filter(|(_, load)| awaited(load)).map(|(&id, _)| id).collect();
        for load in awaited {
            self.state.loads.get_mut(&load).expect("found above").urgent = true;
            self.actions.push_back(Action::Escalate { load });
        }
    }

    fn tiny_scans(&self) -> impl Iterator<Item = &Scan> {
        let bounds = self.policy.priority_bounds(&self.state);
        self.state.tiny_scans(bounds)
    }

    fn propose(
        &mut self,
        strictness: Strictness,
        without_room: &BTreeSet<ScanId>,
        slots: &Slots,
    ) -> Option<LoadPlan> {
        self.policy.choose_load(&self.state, &Attempt { strictness, without_room, slots })
    }

    fn try_relaxed(&mut self, strictness: Strictness, slots: &Slots) -> bool {
        let mut without_room = BTreeSet::new();
        while let Some(plan) = self.propose(strictness, &without_room, slots) {
            if self.try_load(&plan, strictness) {
                return true;
            }
            without_room.insert(plan.scan);
        }
        false
    }

    /// Whether victims may be chosen less strictly: some scan waits for room, and nothing will free any soon. If
    /// something may, the deadline says how long to wait for it. `slots` are closed where something is being read.
    fn may_relax(&mut self, slots: &Slots) -> bool {
        if self.held_back.is_some() || slots.are_closed(self.state.devices()) {
            return false;
        }
        let waiting = self.state.scan_index.waiting.iter();
        let admitted =
            waiting.filter_map(|&(_, id)| self.state.scan(id).filter(|it| slots.admit(it)));
        let mut ends = admitted.filter_map(|scan| self.space_timeout_end(scan.id()));
        let Some(end) = ends.next() else { return false };
        if end <= self.state.now || self.state.is_idle() {
            return true;
        }
        self.deadline = Some(end);
        false
    }

    /// Until when a scan that waits will wait for others to make room.
    fn space_timeout_end(&self, scan: ScanId) -> Option<Time> {
        let since = self.waits_for_data_since(scan)?;
        Some(Time(since.0.saturating_add(self.config.space_timeout_ns)))
    }

    /// Since when a scan waits and will not go on before something is read for it.
    fn waits_for_data_since(&self, scan: ScanId) -> Option<Time> {
        let scan = self.state.scan(scan)?;
        if self.policy.schedules_workers() { scan.starving_since() } else { scan.waiting_since() }
    }

    /// Whether a scan has lost its space timeout; if so, whether what comes free is saved up for it now.
    ///
    /// Room comes free bit by bit, and others would take it. But whoever uses pages may wait for one of those others
    /// to go on. So times of saving and of letting others pass take turns, each twice as long as the one before: at
    /// some point one outlasts every chunk in use.
    fn reservation_for(&self, scan: ScanId) -> Option<SpaceReservation> {
        let since = self.waits_for_data_since(scan)?;
        let space_timeout_ns = self.config.space_timeout_ns.max(1);
        let turn = (self.state.now.since(since) / space_timeout_ns).checked_ilog2()?;
        // Who is held back goes on soon. To evict its chunk for another, held back in turn, would never end. But beside a
        // crowd somebody always is, so that does not count for ever.
        if self.held_back.is_some() && turn < HELD_BACK_TURNS {
            return None;
        }
        let end_ns = space_timeout_ns.saturating_mul(2u64.saturating_pow(turn + 1));
        let end = Time(since.0.saturating_add(end_ns));
        Some(SpaceReservation { end: turn.is_multiple_of(2).then_some(end) })
    }

    /// Starts a load if it fits, if need be only the part that its own scan needs.
    fn try_load(&mut self, plan: &LoadPlan, strictness: Strictness) -> bool {
        let relaxed = strictness > Strictness::Strict;
        let scan = self.state.scan(plan.scan).expect("a load is for a running scan");
        if relaxed && self.waits_for_data_since(plan.scan).is_none() {
            return false; // A relaxed load has to end in a delivery, or scans could evict each other's pages for ever.
        }
        let mut own = plan.clone();
        own.pages.retain(|&id| self.state.chunks_read(scan, id).any(|chunk| chunk == plan.chunk));
        assert!(!own.pages.is_empty(), "I4: a load reads something for its scan");
        // What others need is taken along where it fits, but nothing useful goes for it.
        let whole_first = !relaxed && own.pages.len() < plan.pages.len();
        let tries = whole_first.then_some(plan).into_iter().chain([&own]);
        for plan in tries {
            if let Some(victims) = self.find_room(plan, strictness) {
                self.evict(victims);
                self.begin_load(plan);
                return true;
            }
        }
        false
    }

    /// Pages to evict so that a load fits, all or none.
    fn find_room(&mut self, plan: &LoadPlan, strictness: Strictness) -> Option<Vec<PageId>> {
        let load_bytes: u64 = plan.pages.iter().map(|&id| self.state.bytes_of(id)).sum();
        let bytes = (self.state.held_bytes() + load_bytes).saturating_sub(self.state.pool_bytes());
        if bytes == 0 {
            return Some(Vec::new());
        }
        let room = EvictionRequest { plan: Some(plan), bytes, strictness };
        let victims = self.choose_victims(&room);
        let freed: u64 = victims.iter().map(|&id| self.state.bytes_of(id)).sum();
        (freed >= bytes).then_some(victims)
    }

    fn begin_load(&mut self, plan: &LoadPlan) {
        let scan = self.state.scan(plan.scan).expect("a load is for a running scan");
        let (table, device) = (scan.table, scan.device);
        let mut held = self.state.pages_of(scan, plan.chunk);
        let foreign: Vec<_> = plan.pages.iter().filter(|id| !held.contains(id)).copied().collect();
        held.extend(foreign);
        let load = LoadId(self.next_load);
        self.next_load += 1;
        for &id in &plan.pages {
            self.state.move_page(id, Place::Reading(load));
            self.state.set_read_for(id, Some(plan.scan));
        }
        for &id in &held {
            self.state.pin(id);
        }
        let under_way = loading(&self.state).remove(&device).unwrap_or_default();
        let urgent = under_way.urgent < self.config.loads_in_flight_max
            && self.class_of(plan.scan) == PriorityClass::Tiny;
        let record = Load {
            table,
            device,
            chunk: plan.chunk,
            unreported: plan.pages.clone(),
            held,
            started: self.state.now,
            urgent,
        };
        self.state.tables.get_mut(&table).expect("a scan's table stays registered").last_load =
            Some(plan.chunk);
        self.state.loads.insert(load, record);
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
