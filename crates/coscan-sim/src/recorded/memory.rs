//! The size of the pool in a recorded run, without memory that was handed out to others.

use coscan_core::MemoryLimits;

/// Memory as the commands so far have left it.
#[derive(Debug, Default)]
pub(super) struct PastMemory {
    pub(super) limits: Option<MemoryLimits>,
    pub(super) handed_out_bytes: u64,
    /// The last answer of [`Self::new_pool_bytes`].
    pool_bytes: u64,
}

impl PastMemory {
    /// The memory of a pool of this size.
    pub(super) fn new(pool_bytes: u64) -> Self {
        Self { pool_bytes, ..Self::default() }
    }

    /// The most that the pool may be now, if that has changed.
    pub(super) fn new_pool_bytes(&mut self) -> Option<u64> {
        let limits = self.limits?;
        let left_bytes = limits.budget_bytes.saturating_sub(self.handed_out_bytes);
        let pool_bytes = left_bytes.min(limits.pool_ceiling_bytes);
        (std::mem::replace(&mut self.pool_bytes, pool_bytes) != pool_bytes).then_some(pool_bytes)
    }
}
