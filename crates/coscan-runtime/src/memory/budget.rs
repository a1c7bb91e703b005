//! The budget as its users see it: they take credit, and ask the owner for more if that is too little.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use coscan_core::MissingMemory;
use tokio::sync::Notify;

use super::credit::Credit;
use super::usage::{MemoryUse, MemoryUser};
use crate::options::Options;
use crate::sync::bell::Bell;

/// Idle decoded columns leave one in this many bytes of `Options::decode_bytes` to others.
const IDLE_MARGIN_DIVISOR: u64 = 64;

/// The owner of the budget, which hands out credit.
pub(crate) trait CreditOwner: Send + Sync {
    /// Takes memory that is not free. Never waits.
    ///
    /// # Errors
    /// The missing bytes.
    fn take(&self, user: MemoryUser, bytes: u64) -> Result<(), MissingMemory>;
    /// Covers what was taken beyond the credit, as far as the pool can shrink.
    fn cover(&self);
}

/// The budget.
pub(crate) struct MemoryBudget {
    budget_bytes: u64,
    decode_bytes: u64,
    pool_ceiling_bytes: AtomicU64,
    credit: Arc<Credit>,
    owner: Weak<dyn CreditOwner>,
    /// The bytes that the pool holds now, and the most that all held at once so far.
    pool_held_bytes: AtomicU64,
    held_bytes_max: AtomicU64,
    /// Notified after memory was returned.
    pub(crate) freed: Notify,
}

impl std::fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBudget").field("credit", &self.credit).finish_non_exhaustive()
    }
}

impl MemoryBudget {
    pub(crate) fn new(options: &Options, owner: Weak<dyn CreditOwner>, bell: Arc<Bell>) -> Self {
        // This is a part of the ceiling at the start: this much free memory is worth collecting,
        // wherever the ceiling moves.
        let free_bytes_max = options.memory_limits().quantum_bytes();
        Self {
            budget_bytes: options.memory_bytes,
            decode_bytes: options.decode_bytes,
            pool_ceiling_bytes: AtomicU64::new(options.pool_bytes),
            credit: Arc::new(Credit::new(free_bytes_max, bell)),
            owner,
            pool_held_bytes: AtomicU64::new(0),
            held_bytes_max: AtomicU64::new(0),
            freed: Notify::new(),
        }
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    pub(crate) fn credit(&self) -> &Arc<Credit> {
        &self.credit
    }

    pub(crate) fn pool_ceiling_bytes(&self) -> u64 {
        self.pool_ceiling_bytes.load(Ordering::Relaxed)
    }

    /// Notes the pool's new ceiling. The owner applies it.
    pub(crate) fn note_pool_ceiling(&self, bytes: u64) {
        self.pool_ceiling_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn usage(&self) -> MemoryUse {
        self.credit.usage()
    }

    /// The bytes of idle decoded columns that must go so that this many more can be held. They use only what all others and the
    /// pool at its ceiling leave.
    pub(crate) fn displaced_idle_bytes(&self, bytes: u64) -> u64 {
        let others_bytes = self.usage().total_bytes().saturating_add(bytes);
        others_bytes.saturating_add(self.pool_ceiling_bytes()).saturating_sub(self.budget_bytes)
    }

    /// The bytes that must be given up so that one more column can be idle. Some room is left for batches that are decoded and dropped
    /// again, so that these displace none.
    pub(crate) fn missing_for_idle_bytes(&self) -> u64 {
        let margin_bytes = self.decode_bytes / IDLE_MARGIN_DIVISOR;
        let decoded_bytes = self.usage().decoded_bytes + margin_bytes;
        decoded_bytes.saturating_sub(self.decode_bytes).max(self.displaced_idle_bytes(margin_bytes))
    }

    /// The most bytes of all kinds held at once so far.
    pub(crate) fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max.load(Ordering::Relaxed)
    }

    /// Notes the bytes that the pool holds now.
    pub(crate) fn note_pool_held(&self, pool_bytes: u64) {
        self.pool_held_bytes.store(pool_bytes, Ordering::Relaxed);
        self.note_peak();
    }

    fn note_peak(&self) {
        let pool_bytes = self.pool_held_bytes.load(Ordering::Relaxed);
        // The numbers are read one after the other while memory moves between them. All together
        // hold no more than this (I7).
        let most_bytes = self.budget_bytes.saturating_add(self.credit.overdraft_bytes());
        let held_bytes = (self.usage().total_bytes() + pool_bytes).min(most_bytes);
        if held_bytes > self.held_bytes_max() {
            self.held_bytes_max.fetch_max(held_bytes, Ordering::Relaxed);
        }
    }

    /// Takes memory if the budget has it or the pool can release it. Never waits.
    ///
    /// # Errors
    /// The missing bytes.
    pub(crate) fn try_take(&self, user: MemoryUser, bytes: u64) -> Result<(), MissingMemory> {
        // A request for zero bytes is never refused, however short memory is, since continuing may
        // free some.
        if bytes > 0 && !self.credit.try_take(user, bytes) {
            let owner = self.owner.upgrade().ok_or(MissingMemory { bytes })?;
            owner.take(user, bytes)?;
        }
        self.note_peak();
        Ok(())
    }

    /// Takes memory that is in use already, even beyond the budget. The pool shrinks as far as it can.
    pub(crate) fn take(&self, user: MemoryUser, bytes: u64) {
        if self.credit.take(user, bytes)
            && let Some(owner) = self.owner.upgrade()
        {
            owner.cover();
        }
        self.note_peak();
    }

    /// Returns memory. It locks nothing, so it may be called in a destructor.
    pub(crate) fn give(&self, user: MemoryUser, bytes: u64) {
        self.credit.give(user, bytes);
    }
}
