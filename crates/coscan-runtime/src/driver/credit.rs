//! Credit: memory that core hands out, for users who take and return it without the lock.

use std::sync::Arc;
use std::time::Duration;

use coscan_core::{ActiveBufferManager, MemoryLimits, MissingMemory, Time};

use super::handle::Driver;
use super::revoke::after;
use super::state::State;
use crate::memory::{CreditOwner, MemoryUser};

/// The least time between two rings for credit that is returned for the pool.
const RING_PAUSE: Duration = Duration::from_millis(1);

impl Driver {
    /// Changes the pool's ceiling, and resizes the pool to the size that it may have under it.
    pub(crate) fn set_pool_ceiling_bytes(self: &Arc<Self>, bytes: u64) {
        self.memory.note_pool_ceiling(bytes);
        let limits = MemoryLimits { pool_ceiling_bytes: bytes, ..self.options.memory_limits() };
        self.call(|state, now| {
            state.collect_credit(now);
            let set = state.core.set_memory_limits(now, limits);
            set.expect("I7: what is held is within the budget, which is as before");
        });
        self.displace_idle(0);
    }
}

impl CreditOwner for Driver {
    fn take(&self, user: MemoryUser, bytes: u64) -> Result<(), MissingMemory> {
        let driver = self.this.upgrade().ok_or(MissingMemory { bytes })?;
        driver.call(|state, now| {
            state.take_memory(user, bytes, now).or_else(|missing| {
                match state.revoke_for_operator(now) {
                    true => state.take_memory(user, bytes, now),
                    false => Err(missing),
                }
            })
        })
    }

    fn cover(&self) {
        if let Some(driver) = self.this.upgrade() {
            driver.call(|state, now| state.cover_overdraft(now));
        }
    }
}

impl State {
    /// Takes memory for a user: what is free, and the rest from core, which hands out a little more if the pool has to
    /// shrink for it. Others who take credit meanwhile do not get in between.
    fn take_memory(
        &mut self,
        user: MemoryUser,
        bytes: u64,
        now: Time,
    ) -> Result<(), MissingMemory> {
        let overdraft_bytes = self.credit.overdraft_bytes();
        let free_bytes = self.credit.collect(0);
        let short_bytes = bytes.saturating_sub(free_bytes).saturating_add(overdraft_bytes);
        let taken = match short_bytes {
            0 => Ok(0),
            _ => self.core.take_memory(now, short_bytes, self.credit.free_bytes_max()),
        };
        match taken {
            Ok(taken_bytes) => {
                self.credit.hold(user, bytes);
                self.credit.add(free_bytes + taken_bytes - bytes);
                Ok(())
            }
            Err(missing) => {
                self.credit.add(free_bytes);
                Err(missing)
            }
        }
    }

    /// Covers the overdraft as far as the pool can shrink.
    pub(super) fn cover_overdraft(&mut self, now: Time) {
        let overdraft_bytes = self.credit.overdraft_bytes();
        if overdraft_bytes > 0 && self.core.available_bytes() > 0 {
            let covered_bytes = self.core.cover_overdraft(now, overdraft_bytes);
            self.credit.add(covered_bytes);
        }
    }

    /// Takes back all free credit. It goes to requests that wait, or else to the pool.
    pub(super) fn collect_credit(&mut self, now: Time) {
        self.return_memory(self.credit.collect(0), now);
    }

    /// Takes back much of the free credit if there is plenty, and all of it if the pool lacks it. Returns whether there
    /// was any.
    pub(super) fn collect_surplus(&mut self, now: Time) -> bool {
        let bytes = match self.pool_lacks_memory() {
            true => self.credit.collect(0),
            false => self.credit.collect_surplus(),
        };
        self.return_memory(bytes, now);
        bytes > 0
    }

    /// Marks credit as wanted for the pool, so that returned credit rings, but not each time: that would wake the pump
    /// for each buffer.
    pub(super) fn want_for_pool(&mut self, now: Time) {
        if self.wanted_for_pool.is_none_or(|last| now >= after(last, RING_PAUSE)) {
            self.wanted_for_pool = Some(now);
            self.credit.mark_wanted();
        }
    }

    /// Whether a load waits for space that the pool would have if others had less memory.
    pub(super) fn pool_lacks_memory(&self) -> bool {
        let ceiling = self.core.memory_limits().map(|limits| limits.pool_ceiling_bytes);
        self.core.lacks_space()
            && ceiling.is_some_and(|bytes| self.core.state().pool_bytes() < bytes)
    }

    /// Shrinks the pool if pages that were in use have kept it above a ceiling that was lowered.
    pub(super) fn fit_pool_to_ceiling(&mut self, now: Time) {
        let limits = self.core.memory_limits();
        let limits =
            limits.filter(|limits| self.core.state().pool_bytes() > limits.pool_ceiling_bytes);
        if let Some(limits) = limits {
            let set = self.core.set_memory_limits(now, limits);
            set.expect("the limits are as before");
        }
    }

    pub(super) fn return_memory(&mut self, bytes: u64, now: Time) {
        if bytes > 0 {
            self.core.return_memory(now, bytes);
        }
    }

    /// Hands out in a new core, after a panic, what was handed out before: its users still hold it, and return it to
    /// that core.
    pub(super) fn keep_handed_out(&self, core: &mut ActiveBufferManager) {
        let Some(limits) = self.core.memory_limits() else { return };
        let limits = MemoryLimits { pool_floor_bytes: 0, ..limits };
        let kept = core
            .set_memory_limits(Time(0), limits)
            .and_then(|()| core.take_memory(Time(0), self.core.handed_out_bytes(), 0));
        debug_assert!(kept.is_ok(), "an empty pool gives way");
    }
}
