//! Loads: the policy proposes, the state machine finds room and sees to it that whoever waits gets some (I4, I5).

use super::ActiveBufferManager;
use crate::action::Action;
use crate::ids::{LoadId, PageId, ScanId, Time};
use crate::policy::{Attempt, LoadPlan, Room, Strictness};
use crate::pool::Place;
use crate::scan::{Order, Scan, ScanLength};
use crate::state::Load;

/// Slip 7 in the papers: with few free slots the exclusions are relaxed one by one, or nobody would go on.
const RELAXED: [Strictness; 2] = [Strictness::MayStarve, Strictness::MayRobTrigger];

/// Turns of a scan that waits for room, see `hold_for`, in which it spares those that wait for processors only.
const HELD_BACK_TURNS: u32 = 2;

/// What may be read now.
enum Slot {
    None,
    Urgent,
    Any,
}

/// What a scan that has waited too long for room is due.
struct Hold {
    /// Until when nobody else is served; `None` while others may pass.
    end: Option<Time>,
}

impl ActiveBufferManager {
    /// Starts the load that the policy wants most and that fits. True if one was started.
    pub(super) fn start_load(&mut self) -> bool {
        self.deadline = None;
        let only = match self.free_slot() {
            Slot::None => return false,
            Slot::Urgent => Some(self.tiny_scans().map(Scan::id).collect::<Vec<_>>()),
            Slot::Any => None,
        };
        if only.as_ref().is_some_and(Vec::is_empty) {
            return false;
        }
        let mut without_room = Vec::new();
        while let Some(plan) = self.propose(Strictness::Strict, &without_room, only.as_deref()) {
            if self.try_load(&plan, Strictness::Strict) {
                return true;
            }
            if let Some(hold) = self.hold_for(plan.scan) {
                // I5: nobody is served before a scan that has waited too long for room. What is being read comes
                // first: it may be what frees some.
                if !self.state.loads.is_empty() {
                    return false;
                }
                if RELAXED.into_iter().any(|strictness| self.try_load(&plan, strictness)) {
                    return true;
                }
                if let Some(end) = hold.end {
                    self.deadline = Some(end);
                    return false;
                }
            }
            without_room.push(plan.scan);
        }
        self.may_relax() && RELAXED.into_iter().any(|strictness| self.try_relaxed(strictness))
    }

    /// Makes loads urgent that an urgent scan waits for, though they are for others.
    pub(super) fn hasten_loads(&mut self) {
        if self.waiting.is_empty() || self.state.loads.values().all(|load| load.urgent) {
            return;
        }
        let starving = |scan: &&Scan| scan.starving_since().is_some();
        let waiting: Vec<_> = self.tiny_scans().filter(starving).collect();
        if waiting.is_empty() {
            return;
        }
        let awaited = |load: &Load| {
            let layout = self.state.table(load.table).layout();
            let next = |scan: &Scan, chunk| {
                scan.order() == Order::Any || scan.needed().first() == Some(chunk)
            };
            waiting.iter().filter(|scan| scan.table() == load.table).any(|scan| {
                load.unreported.iter().filter(|&&page| scan.reads(layout, page)).any(|&page| {
                    let mut chunks = layout.chunks_of(page).iter();
                    chunks.any(|&chunk| scan.needed().contains(chunk) && next(scan, chunk))
                })
            })
        };
        let usual = self.state.loads.iter().filter(|(_, load)| !load.urgent);
        let awaited: Vec<_> = usual.filter(|(_, load)| awaited(load)).map(|(&id, _)| id).collect();
        for load in awaited {
            self.state.loads.get_mut(&load).expect("found above").urgent = true;
            self.actions.push_back(Action::Hasten { load });
        }
    }

    /// What kind of load there is a slot for. Urgent ones have slots of their own, but do not pass a load that has been
    /// under way for too long (I5).
    fn free_slot(&self) -> Slot {
        let urgent = self.urgent_loads();
        let usual = self.state.loads.len() - urgent;
        let is_overdue = |load: &Load| self.state.is_overdue(load.started);
        if self.state.loads.len() / 2 >= self.config.loads_in_flight_max {
            Slot::None
        } else if usual < self.config.loads_in_flight_max {
            Slot::Any
        } else if urgent < self.config.loads_in_flight_max
            && !self.state.loads.values().any(is_overdue)
        {
            Slot::Urgent
        } else {
            Slot::None
        }
    }

    fn tiny_scans(&self) -> impl Iterator<Item = &Scan> {
        self.state.scans().filter(|scan| self.policy.length(scan) == ScanLength::Tiny)
    }

    fn urgent_loads(&self) -> usize {
        self.state.loads.values().filter(|load| load.urgent).count()
    }

    fn propose(
        &mut self,
        strictness: Strictness,
        without_room: &[ScanId],
        only: Option<&[ScanId]>,
    ) -> Option<LoadPlan> {
        self.policy.choose_load(&self.state, &Attempt { strictness, without_room, only })
    }

    fn try_relaxed(&mut self, strictness: Strictness) -> bool {
        let mut without_room = Vec::new();
        while let Some(plan) = self.propose(strictness, &without_room, None) {
            if self.try_load(&plan, strictness) {
                return true;
            }
            without_room.push(plan.scan);
        }
        false
    }

    /// Whether victims may be chosen less strictly: some scan waits for room, and nothing will free any soon. If
    /// something may, the deadline says how long to wait for it.
    fn may_relax(&mut self) -> bool {
        if !self.state.loads.is_empty() || self.held_back.is_some() {
            return false;
        }
        let ends = self.state.scans().filter_map(|scan| self.patience_end(scan.id()));
        let Some(end) = ends.min() else { return false };
        if end <= self.state.now || self.state.scans().all(|scan| scan.busy_workers() == 0) {
            return true;
        }
        self.deadline = Some(end);
        false
    }

    /// Until when a scan that waits will wait for others to make room.
    fn patience_end(&self, scan: ScanId) -> Option<Time> {
        let since = self.waits_for_data_since(scan)?;
        Some(Time(since.0.saturating_add(self.config.patience_ns)))
    }

    /// Since when a scan waits and will not go on before something is read for it.
    fn waits_for_data_since(&self, scan: ScanId) -> Option<Time> {
        let scan = self.state.scan(scan)?;
        if self.policy.schedules_workers() { scan.starving_since() } else { scan.waiting_since() }
    }

    /// Whether a scan has lost its patience; if so, whether what comes free is saved up for it now.
    ///
    /// Room comes free bit by bit, and others would take it. But whoever uses pages may wait for one of those others
    /// to go on. So times of saving and of letting others pass take turns, each twice as long as the one before: at
    /// some point one outlasts every chunk in use.
    fn hold_for(&self, scan: ScanId) -> Option<Hold> {
        let since = self.waits_for_data_since(scan)?;
        let patience_ns = self.config.patience_ns.max(1);
        let turn = (self.state.now.since(since) / patience_ns).checked_ilog2()?;
        // Who is held back goes on soon. To evict its chunk for another, held back in turn, would never end. But beside a
        // crowd somebody always is, so that does not count for ever.
        if self.held_back.is_some() && turn < HELD_BACK_TURNS {
            return None;
        }
        let end_ns = patience_ns.saturating_mul(2u64.saturating_pow(turn + 1));
        let end = Time(since.0.saturating_add(end_ns));
        Some(Hold { end: turn.is_multiple_of(2).then_some(end) })
    }

    /// Starts a load if it fits, if need be only the part that its own scan needs.
    fn try_load(&mut self, plan: &LoadPlan, strictness: Strictness) -> bool {
        let relaxed = strictness > Strictness::Strict;
        let scan = self.state.scan(plan.scan).expect("a load is for a running scan");
        if relaxed && self.waits_for_data_since(plan.scan).is_none() {
            return false; // A relaxed load has to end in a delivery, or scans could evict each other's pages for ever.
        }
        let layout = self.state.table(scan.table).layout();
        let mut own = plan.clone();
        own.pages.retain(|id| scan.reads(layout, id.page));
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
        let room = Room { plan: Some(plan), bytes, strictness };
        let victims = self.policy.choose_victims(&self.state, &room);
        let freed: u64 = victims.iter().map(|&id| self.state.bytes_of(id)).sum();
        (freed >= bytes).then_some(victims)
    }

    fn begin_load(&mut self, plan: &LoadPlan) {
        let scan = self.state.scan(plan.scan).expect("a load is for a running scan");
        let table = scan.table;
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
        let pages: Vec<_> = plan.pages.iter().map(|id| id.page).collect();
        let urgent = self.urgent_loads() < self.config.loads_in_flight_max
            && self.length_of(plan.scan) == ScanLength::Tiny;
        let record = Load {
            scan: plan.scan,
            table,
            unreported: pages.clone(),
            held: held.into_iter().map(|id| id.page).collect(),
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
            pages,
            urgent,
        });
    }
}
