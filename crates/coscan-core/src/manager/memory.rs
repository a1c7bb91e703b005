//! Commands of memory, and of the size of the pool, which shrinks when memory is needed beside it.

use super::ActiveBufferManager;
use crate::action::Action;
use crate::error::MissingMemory;
use crate::ids::{ScanId, TicketId, Time};
use crate::memory::{Arbitrator, MemoryLimits, MemoryStage, PoolSize, Service, UnmetMemoryRequest};
use crate::policy::{EvictionRequest, Strictness};
use crate::scan::PriorityClass;

impl ActiveBufferManager {
    /// Sets the bytes that the pool may hold and evicts down to them. Returns the new limit: more than asked for if
    /// pages in use or being read, or the largest chunk of a running scan, take more; less if the
    /// [budget](Self::set_memory_limits) has less left. With memory limits, a later command may move it again: to keep
    /// it, change [`MemoryLimits::pool_ceiling_bytes`].
    pub fn set_pool_bytes(&mut self, now: Time, pool_bytes: u64) -> u64 {
        let left_bytes = self.memory.as_ref().map_or(u64::MAX, Arbitrator::left_bytes);
        self.resize_pool(now, pool_bytes.min(left_bytes))
    }

    /// Sets the limits on memory, and resizes the pool to what it may have under them. Until the first call nothing is
    /// handed out, and the pool keeps the size of [`Config::pool_bytes`](crate::Config) or [`Self::set_pool_bytes`].
    ///
    /// # Errors
    /// If the budget is less than what is handed out and what the pool cannot give up now. The limits are then unchanged.
    pub fn set_memory_limits(
        &mut self,
        now: Time,
        limits: MemoryLimits,
    ) -> Result<(), MissingMemory> {
        let handed_out_bytes = self.handed_out_bytes();
        let held_bytes = handed_out_bytes.saturating_add(self.pool_size().least_bytes);
        MissingMemory::check(held_bytes, limits.budget_bytes)?;
        self.memory.get_or_insert_with(|| Arbitrator::new(limits)).set_limits(limits);
        let target_bytes = self.pool_bytes_target();
        self.resize_pool(now, target_bytes);
        self.check_budget();
        Ok(())
    }

    /// Hands out memory to a caller that cannot wait, before any request. Returns how much: up to `spare_bytes_max` more
    /// than asked for, if that is free without shrinking the pool further and no request waits, so that the caller need
    /// not ask for every small piece. A caller that could wait must first check [`Self::oldest_memory_request`].
    ///
    /// # Errors
    /// The bytes missing, if what is left of the budget and what the pool can give up now are too little. Then nothing has
    /// changed. The answer takes constant time.
    pub fn take_memory(
        &mut self,
        now: Time,
        bytes: u64,
        spare_bytes_max: u64,
    ) -> Result<u64, MissingMemory> {
        MissingMemory::check(bytes, self.available_bytes())?;
        self.give_way(now, bytes);
        let (limit_bytes, memory) = (self.state.pool_bytes(), self.memory.as_mut());
        let Some(memory) = memory else { return Ok(0) };
        let spare_bytes = match memory.has_requests() {
            true => 0,
            false => (memory.left_bytes() - bytes - limit_bytes).min(spare_bytes_max),
        };
        memory.hand_out(bytes + spare_bytes);
        self.check_budget();
        Ok(bytes + spare_bytes)
    }

    /// Hands out up to `overdraft_bytes` that the caller already uses: what is left of the budget, and what the pool can
    /// give up now. Returns how much.
    pub fn cover_overdraft(&mut self, now: Time, overdraft_bytes: u64) -> u64 {
        let bytes = overdraft_bytes.min(self.available_bytes());
        self.take_memory(now, bytes, 0).unwrap_or(0)
    }

    /// Takes back memory that was handed out. It goes to requests that wait, or else to the pool.
    ///
    /// # Panics
    /// If more returns than was handed out.
    pub fn return_memory(&mut self, now: Time, bytes: u64) {
        self.pass_time(now);
        if bytes > 0 {
            let memory = self.memory.as_mut().expect("memory that returns was handed out");
            memory.take_back(bytes);
        }
        self.fit_pool();
    }

    /// Grows the pool as far as it may now; while requests wait, only to `pool_bytes`. An overdue request takes that back at
    /// the next poll, unless a scan that needs it was registered in between.
    ///
    /// # Errors
    /// The bytes missing to `pool_bytes`.
    pub fn grow_pool(&mut self, now: Time, pool_bytes: u64) -> Result<(), MissingMemory> {
        let memory = self.memory.as_ref();
        let target_bytes = memory.map_or(0, |memory| memory.pool_bytes_target(pool_bytes));
        if target_bytes > self.state.pool_bytes() {
            self.resize_pool(now, target_bytes);
        }
        MissingMemory::check(pool_bytes, self.state.pool_bytes())
    }

    /// Queues a request for memory. Its [`GrantMemory`](Action::GrantMemory) comes out of [`Self::poll_action`] once there
    /// is enough. It keeps the priority class that its scan has [now](Self::priority_of); without a scan, that of a tiny one.
    ///
    /// # Errors
    /// If it is more than can ever be handed out: [`MemoryLimits::handed_out_bytes_max`].
    pub fn request_memory(
        &mut self,
        now: Time,
        stage: MemoryStage,
        scan: Option<ScanId>,
        bytes: u64,
    ) -> Result<TicketId, MissingMemory> {
        self.pass_time(now);
        let class = scan.map_or(PriorityClass::Tiny, |scan| self.priority_of(scan));
        let Some(memory) = &mut self.memory else { return Err(MissingMemory { bytes }) };
        MissingMemory::check(bytes, memory.limits().handed_out_bytes_max())?;
        Ok(memory.request(self.state.now, stage, class, bytes))
    }

    /// Gives up a request. If its grant has not come out yet, it never does. If it has, nothing happens: the caller holds
    /// the memory, and returns it.
    pub fn withdraw_memory_request(&mut self, now: Time, ticket: TicketId) {
        self.pass_time(now);
        let Some(memory) = &mut self.memory else { return };
        if memory.remove(ticket).is_none() {
            let granted = |action: &Action| match *action {
                Action::GrantMemory { ticket: granted, bytes } if granted == ticket => Some(bytes),
                _ => None,
            };
            let Some(bytes) = self.actions.iter().find_map(granted) else { return };
            self.actions.retain(|action| granted(action).is_none());
            memory.take_back(bytes);
        }
        self.fit_pool();
    }

    // Getters.

    /// The limits on memory, once they are set.
    #[must_use]
    pub fn memory_limits(&self) -> Option<MemoryLimits> {
        self.memory.as_ref().map(Arbitrator::limits)
    }

    /// Bytes that are handed out.
    #[must_use]
    pub fn handed_out_bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, Arbitrator::handed_out_bytes)
    }

    /// The most that could be handed out now: what is left of the budget, and what the pool can give up.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        let pool = self.pool_size();
        self.memory.as_ref().map_or(0, |memory| memory.available_bytes(pool))
    }

    /// The bytes by which [`Self::available_bytes`] would grow if no page were in use or being read.
    #[must_use]
    pub fn bytes_kept_in_use(&self) -> u64 {
        let pool = self.pool_size();
        let unused = PoolSize { least_bytes: self.largest_chunk_bytes(), ..pool };
        let memory = self.memory.as_ref();
        memory.map_or(0, |memory| memory.pool_bytes_min(pool) - memory.pool_bytes_min(unused))
    }

    /// The requests that wait, in the order in which they are met.
    pub fn unmet_memory_requests(&self) -> impl Iterator<Item = UnmetMemoryRequest> {
        let (now, pool) = (self.state.now, self.pool_size());
        self.memory.iter().flat_map(move |memory| memory.unmet(now, pool))
    }

    /// The bytes missing before any request can be met: to the overdue one that is next, or else to the smallest. `None` if
    /// none waits.
    #[must_use]
    pub fn missing_memory(&self) -> Option<MissingMemory> {
        let pool = self.pool_size();
        self.memory.as_ref().and_then(|memory| memory.missing(self.state.now, pool))
    }

    /// When the oldest request of this stage or an earlier one was made. Once it is overdue ([`MemoryLimits::is_overdue`]),
    /// callers that can wait must not take memory for this stage.
    #[must_use]
    pub fn oldest_memory_request(&self, stage: MemoryStage) -> Option<Time> {
        self.memory.as_ref().and_then(|memory| memory.oldest(stage))
    }

    // Internals.

    /// Meets requests as far as there is memory.
    pub(super) fn meet_requests(&mut self) {
        while let Some(memory) = &self.memory {
            match memory.next_service(self.state.now, self.pool_size()) {
                Service::Meet(ticket) => self.meet(ticket),
                Service::SaveUp(bytes) => return self.save_up(bytes),
                Service::Wait => return,
            }
        }
    }

    fn meet(&mut self, ticket: TicketId) {
        let memory = self.memory.as_mut().expect("a ticket was given");
        let bytes = memory.remove(ticket).expect("a ticket that waits is met");
        self.give_way(self.state.now, bytes);
        self.memory.as_mut().expect("as before").hand_out(bytes);
        self.actions.push_back(Action::GrantMemory { ticket, bytes });
        self.fit_pool();
    }

    /// Shrinks the pool as far as possible for a waiting request of this many bytes, which is not overtaken any more.
    fn save_up(&mut self, bytes: u64) {
        let (memory, pool) = (self.memory.as_ref().expect("someone waits"), self.pool_size());
        let left_bytes = memory.left_bytes().saturating_sub(bytes);
        let target_bytes = left_bytes.max(memory.pool_bytes_min(pool));
        if target_bytes < pool.limit_bytes {
            self.resize_pool(self.state.now, target_bytes);
        }
    }

    /// Shrinks the pool so that these bytes, which are available, can be handed out.
    fn give_way(&mut self, now: Time, bytes: u64) {
        let pool = self.pool_size();
        let Some(memory) = &self.memory else { return };
        let target_bytes = memory.pool_bytes_beside(bytes, pool);
        if target_bytes < pool.limit_bytes {
            self.resize_pool(now, target_bytes);
        }
    }

    /// Moves the pool's limit to its target if that is worth it.
    fn fit_pool(&mut self) {
        let (limit_bytes, target_bytes) = (self.state.pool_bytes(), self.pool_bytes_target());
        let limits = self.memory_limits();
        if limits.is_some_and(|limits| limits.is_worth_moving(limit_bytes, target_bytes)) {
            self.resize_pool(self.state.now, target_bytes);
        }
        self.check_budget();
    }

    fn pool_bytes_target(&self) -> u64 {
        let limit_bytes = self.state.pool_bytes();
        self.memory.as_ref().map_or(limit_bytes, |memory| memory.pool_bytes_target(limit_bytes))
    }

    fn pool_size(&self) -> PoolSize {
        let in_use_bytes = self.state.held_bytes() - self.state.unpinned_bytes();
        PoolSize {
            limit_bytes: self.state.pool_bytes(),
            least_bytes: self.largest_chunk_bytes().max(in_use_bytes),
        }
    }

    /// Bytes of the largest chunk that a running scan was registered for.
    fn largest_chunk_bytes(&self) -> u64 {
        self.largest_chunks.last().map_or(0, |&(bytes, _)| bytes)
    }

    /// Sets the pool's limit and evicts down to it. Returns the limit, see [`Self::set_pool_bytes`].
    fn resize_pool(&mut self, now: Time, pool_bytes: u64) -> u64 {
        self.at(now);
        let target_bytes = pool_bytes.max(self.largest_chunk_bytes());
        for strictness in Strictness::ALL {
            let bytes = self.state.held_bytes().saturating_sub(target_bytes);
            if bytes > 0 {
                let request = EvictionRequest { plan: None, bytes, strictness };
                let victims = self.choose_victims(&request);
                self.evict(victims);
            }
        }
        self.state.pool.limit_bytes = target_bytes.max(self.state.held_bytes());
        self.state.pool.limit_bytes
    }

    fn check_budget(&self) {
        debug_assert!(
            self.memory
                .as_ref()
                .is_none_or(|memory| self.state.pool_bytes() <= memory.left_bytes()),
            "I7: the pool and what is handed out share the budget"
        );
    }
}
