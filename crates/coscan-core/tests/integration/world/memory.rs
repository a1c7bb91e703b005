//! Memory beside the pool: its commands, and a naive model that gives the expected answer of each.

use std::collections::BTreeMap;

use coscan_core::*;

use super::{Event, World};

/// A request in the model.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    stage: MemoryStage,
    class: PriorityClass,
    bytes: u64,
    since: u64,
}

/// Memory handed out, and the requests that wait for memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryModel {
    limits: Option<MemoryLimits>,
    handed_out_bytes: u64,
    waiting: BTreeMap<TicketId, Waiting>,
    /// Tickets that were met, in order.
    pub met: Vec<TicketId>,
    /// Whether the limit of the pool was set since its limits were.
    pub is_pool_set_by_hand: bool,
    /// Nanoseconds after which memory is returned; `None` if the test returns it.
    pub held_ns: Option<u64>,
}

impl World {
    pub(crate) fn set_memory_limits(&mut self, limits: MemoryLimits) -> Result<(), MissingMemory> {
        let fixed_bytes = self.memory.handed_out_bytes + self.pool_in_use_bytes();
        let missing_bytes = fixed_bytes.saturating_sub(limits.budget_bytes);
        let set = self.manager.set_memory_limits(Time(self.now), limits);
        assert_eq!(set.map_err(|it| it.bytes).err().unwrap_or(0), missing_bytes);
        if set.is_ok() {
            self.memory.limits = Some(limits);
            self.memory.is_pool_set_by_hand = false;
        }
        self.memory_changed();
        set
    }

    /// Takes memory. The model decides whether there is enough.
    pub(crate) fn take(&mut self, bytes: u64, spare_bytes_max: u64) -> Result<u64, MissingMemory> {
        let available_bytes = self.shadow_available_bytes();
        let taken = self.manager.take_memory(Time(self.now), bytes, spare_bytes_max);
        match taken {
            Ok(taken) => {
                assert!(bytes <= available_bytes, "there are only {available_bytes} bytes");
                assert!((bytes..=bytes + spare_bytes_max).contains(&taken));
                assert!(taken == bytes || self.memory.waiting.is_empty(), "others wait");
                self.handed_out(taken);
            }
            Err(missing) => assert_eq!(missing.bytes, bytes - available_bytes),
        }
        self.memory_changed();
        taken
    }

    pub(crate) fn cover(&mut self, overdraft_bytes: u64) -> u64 {
        let expected_bytes = overdraft_bytes.min(self.shadow_available_bytes());
        let covered_bytes = self.manager.cover_overdraft(Time(self.now), overdraft_bytes);
        assert_eq!(covered_bytes, expected_bytes);
        self.handed_out(covered_bytes);
        self.memory_changed();
        covered_bytes
    }

    pub(crate) fn give(&mut self, bytes: u64) {
        self.memory.handed_out_bytes -= bytes;
        self.manager.return_memory(Time(self.now), bytes);
        self.memory_changed();
    }

    pub(crate) fn grow_pool(&mut self, bytes: u64) -> Result<(), MissingMemory> {
        let before_bytes = self.manager.state().pool_bytes();
        let grown = self.manager.grow_pool(Time(self.now), bytes);
        if let Some(limits) = self.memory.limits {
            let left_bytes = limits.budget_bytes - self.memory.handed_out_bytes;
            let most_bytes = left_bytes.min(limits.pool_ceiling_bytes).max(before_bytes);
            assert_eq!(grown.is_ok(), bytes <= most_bytes);
            let waits = !self.memory.waiting.is_empty();
            let pool_bytes = self.manager.state().pool_bytes();
            let expected_bytes =
                if waits { bytes.clamp(before_bytes, most_bytes) } else { most_bytes };
            assert_eq!(pool_bytes, expected_bytes, "others wait: {waits}");
        }
        self.memory_changed();
        grown
    }

    pub(crate) fn request(
        &mut self,
        stage: MemoryStage,
        scan: Option<ScanId>,
        bytes: u64,
    ) -> Result<TicketId, MissingMemory> {
        let class = scan.map_or(PriorityClass::Tiny, |scan| self.manager.priority_of(scan));
        let ticket = self.manager.request_memory(Time(self.now), stage, scan, bytes);
        let limits = self.memory.limits;
        let beside_floor = |it: MemoryLimits| it.budget_bytes.saturating_sub(floor_bytes(&it));
        let most_bytes = limits.map_or(0, beside_floor);
        assert_eq!(ticket.is_ok(), limits.is_some() && bytes <= most_bytes);
        if let Ok(ticket) = ticket {
            let waiting = Waiting { stage, class, bytes, since: self.now };
            let last = self.memory.waiting.last_key_value().map(|(&last, _)| last);
            assert!(last.is_none_or(|last| last < ticket) && !self.memory.met.contains(&ticket));
            self.memory.waiting.insert(ticket, waiting);
        }
        self.memory_changed();
        ticket
    }

    pub(crate) fn withdraw(&mut self, ticket: TicketId) {
        self.manager.withdraw_memory_request(Time(self.now), ticket);
        self.memory.waiting.remove(&ticket);
        self.memory_changed();
    }

    /// The requests that wait, first arrived first.
    pub(crate) fn waiting(&self) -> Vec<TicketId> {
        self.memory.waiting.keys().copied().collect()
    }

    pub(crate) fn handed_out_bytes(&self) -> u64 {
        self.memory.handed_out_bytes
    }

    /// Notes that a request is met, and checks that no other was to be met before it.
    pub(super) fn granted(&mut self, ticket: TicketId, bytes: u64) {
        let (available_bytes, now) = (self.shadow_available_bytes(), self.core_now());
        let order = self.memory.order(now);
        let met = self.memory.waiting[&ticket];
        assert!(bytes == met.bytes && bytes <= available_bytes);
        for before in order.into_iter().take_while(|&before| before != ticket) {
            let request = self.memory.waiting[&before];
            assert!(!self.memory.is_overdue(now, &request), "{before:?} is overtaken");
            assert!(request.bytes > available_bytes, "{before:?} comes first");
        }
        self.memory.waiting.remove(&ticket);
        self.memory.met.push(ticket);
        self.handed_out(bytes);
    }

    fn handed_out(&mut self, bytes: u64) {
        self.memory.handed_out_bytes += bytes;
        if let Some(ns) = self.memory.held_ns.filter(|_| bytes > 0) {
            self.plan(self.now + ns, Event::Return(bytes));
        }
    }

    fn memory_changed(&mut self) {
        self.model.pool_resized(self.manager.state().pool_bytes());
        self.check_memory();
        self.settle_at_times();
    }

    /// Checks that no waiting request could be met, and that the pool has the size that it should.
    pub(super) fn check_memory_settled(&self) {
        self.check_memory();
        let Some(limits) = self.memory.limits else { return };
        let (available_bytes, now) = (self.shadow_available_bytes(), self.core_now());
        let order = self.memory.order(now);
        let pool_bytes = self.manager.state().pool_bytes();
        let left_bytes = limits.budget_bytes - self.memory.handed_out_bytes;
        let least_bytes = floor_bytes(&limits).max(self.pool_in_use_bytes());
        for ticket in &order {
            let request = self.memory.waiting[ticket];
            assert!(request.bytes > available_bytes, "{ticket:?} could be met");
            if self.memory.is_overdue(now, &request) {
                let saved = left_bytes.saturating_sub(request.bytes).max(least_bytes);
                assert!(pool_bytes <= saved, "the pool gives {ticket:?} what it can");
                return;
            }
        }
        if order.is_empty() && !self.memory.is_pool_set_by_hand {
            let target_bytes = left_bytes.min(limits.pool_ceiling_bytes);
            let unused_bytes = target_bytes.saturating_sub(pool_bytes);
            assert!(unused_bytes <= limits.pool_ceiling_bytes / 64, "the pool has what nobody has");
        }
    }

    /// Checks that manager and model agree about memory.
    fn check_memory(&self) {
        self.manager.audit().unwrap();
        assert_eq!(self.manager.handed_out_bytes(), self.memory.handed_out_bytes);
        let Some(limits) = self.memory.limits else { return };
        let pool_bytes = self.manager.state().pool_bytes();
        assert!(pool_bytes + self.memory.handed_out_bytes <= limits.budget_bytes, "I7");
    }

    /// The requests as the manager lists them.
    pub(crate) fn check_unmet(&self) {
        let available_bytes = self.shadow_available_bytes();
        let expected = self.memory.order(self.core_now()).into_iter().map(|ticket| {
            let Waiting { stage, bytes, .. } = self.memory.waiting[&ticket];
            let missing_bytes = bytes.saturating_sub(available_bytes);
            UnmetMemoryRequest { ticket, stage, bytes, missing_bytes }
        });
        let unmet: Vec<_> = self.manager.unmet_memory_requests().collect();
        assert_eq!(unmet, expected.collect::<Vec<_>>());
        for stage in MemoryStage::ALL {
            let waiting = self.memory.waiting.values().filter(|it| it.stage <= stage);
            let oldest = waiting.map(|it| Time(it.since)).min();
            assert_eq!(self.manager.oldest_memory_request(stage), oldest);
        }
    }

    /// The time of the last command.
    fn core_now(&self) -> u64 {
        self.manager.state().now().0
    }

    /// The most that could be handed out, by the model's own count.
    fn shadow_available_bytes(&self) -> u64 {
        let Some(limits) = self.memory.limits else { return 0 };
        let least_bytes = floor_bytes(&limits).max(self.pool_in_use_bytes());
        let pool_bytes = least_bytes.min(self.manager.state().pool_bytes());
        limits.budget_bytes - self.memory.handed_out_bytes - pool_bytes
    }

    /// The bytes of the pool that are in use. The counts that this reads from the manager are audited after each step.
    fn pool_in_use_bytes(&self) -> u64 {
        let state = self.manager.state();
        let in_use_bytes = state.held_bytes() - state.unpinned_bytes();
        in_use_bytes.max(self.model.largest_chunk_bytes())
    }
}

impl MemoryModel {
    /// The requests that wait, first to be met first.
    fn order(&self, now: u64) -> Vec<TicketId> {
        let mut order: Vec<_> = self.waiting.keys().copied().collect();
        order.sort_by_key(|ticket| {
            let request = &self.waiting[ticket];
            let class = (!self.is_overdue(now, request)).then_some(request.class);
            (request.stage, class, *ticket)
        });
        order
    }

    fn is_overdue(&self, now: u64, request: &Waiting) -> bool {
        let overtaking_ns = self.limits.map_or(0, |limits| limits.overtaking_ns);
        now - request.since >= overtaking_ns
    }
}

fn floor_bytes(limits: &MemoryLimits) -> u64 {
    limits.pool_floor_bytes.min(limits.pool_ceiling_bytes)
}
