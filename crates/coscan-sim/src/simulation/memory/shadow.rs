//! The shadow model: invariants of memory, counted by the simulator itself.

use coscan_core::{MemoryStage, Scan, Time};

use crate::simulation::Simulation;
use crate::violation::{Broken, Rule, ensure};

impl Simulation<'_> {
    /// Checks memory when no more actions come out.
    pub(in crate::simulation) fn check_memory(&self) -> Result<(), Broken> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let (handed_out, known) = (memory.handed_out_bytes(), self.manager.handed_out_bytes());
        ensure(handed_out == known, Rule::Memory, || {
            format!("{handed_out} bytes are handed out, the manager counts {known}")
        })?;
        let (pool, budget) = (self.manager.state().pool_bytes(), memory.usage.limits.budget_bytes);
        ensure(pool + handed_out <= budget, Rule::Memory, || {
            format!("a pool of {pool} bytes and {handed_out} bytes handed out of {budget}")
        })
    }

    /// Checks that no request waits for longer than the runtime lets a query wait.
    pub(super) fn check_waits(&self) -> Result<(), Broken> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let ns_max = memory.usage.limits.overtaking_ns.saturating_mul(2);
        let too_long = memory.requests.iter().find(|(_, it)| self.now.since(it.since) > ns_max);
        ensure(too_long.is_none(), Rule::NoStarving, || {
            format!("a request for memory waits for more than {ns_max} ns: {too_long:?}")
        })
    }

    /// Counts the time until the next event.
    pub(in crate::simulation) fn count_memory_time(&mut self, until: Time) {
        let ns = until.since(self.now);
        let is_idle = ns > 0 && self.loads.is_empty() && self.could_load();
        let Some(memory) = &mut self.memory else { return };
        memory.outcome.short_ns += if memory.requests.is_empty() { 0 } else { ns };
        memory.outcome.idle_ns += if is_idle { ns } else { 0 };
    }

    /// Whether a scan waits for data that would fit into the pool, if the pool had all free memory.
    fn could_load(&self) -> bool {
        let Some(memory) = &self.memory else { return false };
        let (state, limits) = (self.manager.state(), memory.usage.limits);
        let left_bytes = limits.budget_bytes - memory.handed_out_bytes();
        let room_bytes = left_bytes.min(limits.pool_ceiling_bytes) - self.in_use_bytes();
        let lacks = |scan: &Scan| {
            let chunk = scan.needed().first()?;
            let pages = state.pages_of(scan, chunk).into_iter().filter(|&page| state.is_cold(page));
            let cold_bytes: u64 = pages.map(|page| state.bytes_of(page)).sum();
            Some(cold_bytes > 0 && cold_bytes <= room_bytes)
        };
        let mut waiting = state.scans().filter(|scan| scan.waiting_since().is_some());
        waiting.any(|scan| scan.ready_chunks() == 0 && lacks(scan).unwrap_or(false))
    }

    pub(super) fn shadow_available_bytes(&self) -> u64 {
        let Some(memory) = &self.memory else { return 0 };
        let limits = memory.usage.limits;
        let pool_bytes = self.in_use_bytes().max(limits.pool_floor_bytes);
        limits.budget_bytes - memory.handed_out_bytes() - pool_bytes
    }

    /// Bytes of the pool that are in use or being read.
    fn in_use_bytes(&self) -> u64 {
        let state = self.manager.state();
        state.held_bytes() - state.unpinned_bytes()
    }

    /// Whether a request has waited for so long that none of this stage may overtake it.
    pub(super) fn is_closed_to(&self, stage: MemoryStage) -> bool {
        let oldest = self.manager.oldest_memory_request(stage);
        let limits = self.manager.memory_limits();
        limits.zip(oldest).is_some_and(|(limits, oldest)| limits.is_overdue(self.now, oldest))
    }
}
