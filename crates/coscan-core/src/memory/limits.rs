//! The limits on memory, and how large the pool is under them.

use serde::{Deserialize, Serialize};

use crate::ids::Time;

/// The pool grows by more than this part of its ceiling at a time, unless it reaches the ceiling.
const GROWTH_STEPS: u64 = 64;

/// The limits on memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MemoryLimits {
    /// The budget: the pool and the memory handed out beside it never exceed it.
    pub budget_bytes: u64,
    /// The most that the pool may be.
    pub pool_ceiling_bytes: u64,
    /// The pool does not shrink below this for others. A lower ceiling takes precedence.
    pub pool_floor_bytes: u64,
    /// Nanoseconds of waiting after which a request is overdue: none of its stage or a later one may overtake it. Half of
    /// the time that the caller lets a request wait is usual.
    pub overtaking_ns: u64,
}

impl MemoryLimits {
    /// The most that can ever be handed out at once: a larger request is refused.
    #[must_use]
    pub fn handed_out_bytes_max(&self) -> u64 {
        self.budget_bytes.saturating_sub(self.floor_bytes())
    }

    /// Whether a request made at `since` is overdue, so that it may not be overtaken any more.
    #[must_use]
    pub fn is_overdue(&self, now: Time, since: Time) -> bool {
        now.since(since) >= self.overtaking_ns
    }

    /// The bytes by which the pool shrinks further than necessary for others: spare memory, so that it does not move
    /// each time.
    #[must_use]
    pub fn quantum_bytes(&self) -> u64 {
        self.pool_ceiling_bytes / GROWTH_STEPS / 2
    }

    pub(super) fn floor_bytes(&self) -> u64 {
        self.pool_floor_bytes.min(self.pool_ceiling_bytes)
    }

    /// These bytes less a quantum, but not less than the floor.
    pub(super) fn with_slack(&self, bytes: u64) -> u64 {
        bytes - self.quantum_bytes().min(bytes.saturating_sub(self.floor_bytes()))
    }

    /// Whether to move the pool's limit to its target: down at once, up in steps that are worth the work.
    pub(crate) fn is_worth_moving(&self, limit_bytes: u64, target_bytes: u64) -> bool {
        let reaches_ceiling = target_bytes == self.pool_ceiling_bytes && limit_bytes < target_bytes;
        reaches_ceiling
            || target_bytes < limit_bytes
            || target_bytes - limit_bytes > self.pool_ceiling_bytes / GROWTH_STEPS
    }
}
