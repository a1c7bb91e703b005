//! The limits of the pool, given the memory of the other holders.

use crate::options::Options;

/// The pool grows by at least this part of its ceiling, unless it reaches the ceiling.
const GROWTH_STEPS: u64 = 64;

/// The limits that are set, in bytes; the table is in the [module's documentation](super).
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolLimits {
    budget_bytes: u64,
    ceiling_bytes: u64,
    /// A lower ceiling takes precedence.
    floor_bytes: u64,
}

impl PoolLimits {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            budget_bytes: options.memory_bytes,
            ceiling_bytes: options.pool_bytes,
            floor_bytes: options.pool_bytes_min,
        }
    }

    pub(super) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// The most credit handed out beyond what was asked for.
    pub(super) fn quantum_bytes(&self) -> u64 {
        self.ceiling_bytes / GROWTH_STEPS / 2
    }

    pub(super) fn ceiling_bytes(&self) -> u64 {
        self.ceiling_bytes
    }

    pub(super) fn set_ceiling_bytes(&mut self, bytes: u64) {
        self.ceiling_bytes = bytes;
    }

    pub(super) fn floor_bytes(&self) -> u64 {
        self.floor_bytes.min(self.ceiling_bytes)
    }

    /// The rest of the budget while the other holders have `outside_bytes`.
    pub(super) fn left_bytes(&self, outside_bytes: u64) -> u64 {
        self.budget_bytes.saturating_sub(outside_bytes)
    }

    /// The size to aim at while the other users have `outside_bytes`, of a pool whose limit is `limit_bytes`: between floor
    /// and ceiling, but it does not grow into what others have.
    pub(super) fn target_bytes(&self, outside_bytes: u64, limit_bytes: u64) -> u64 {
        let left_bytes = self.left_bytes(outside_bytes);
        let wanted_bytes = left_bytes.clamp(self.floor_bytes(), self.ceiling_bytes);
        wanted_bytes.min(left_bytes.max(limit_bytes))
    }

    /// Whether to move the limit to the target: down at once, up in steps that are worth the work.
    pub(super) fn is_worth_moving(&self, limit_bytes: u64, target_bytes: u64) -> bool {
        let reaches_ceiling = target_bytes == self.ceiling_bytes && limit_bytes < target_bytes;
        reaches_ceiling
            || target_bytes < limit_bytes
            || target_bytes - limit_bytes > self.ceiling_bytes / GROWTH_STEPS
    }

    /// The limit to shrink to when others need all above `bytes`, which is at least the floor: a little lower, so that
    /// memory taken in small pieces does not move the pool each time.
    pub(super) fn with_slack(&self, bytes: u64) -> u64 {
        bytes - self.quantum_bytes().min(bytes - self.floor_bytes())
    }
}
