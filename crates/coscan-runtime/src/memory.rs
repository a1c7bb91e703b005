//! One budget for everything held: stored pages, decoded columns, operators.
//!
//! The pool has what the others leave it, up to its own limit and down to its floor: when decoding or an operator needs
//! memory, the pool gives way at once; when they give it back, the pool grows again. Decoded columns are counted as
//! long as anybody references their buffers, a query that passed them on among them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{MemoryPool, MemoryReservation};
use tokio::sync::Notify;

use crate::options::Options;

/// Who holds memory outside of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Decoded,
    Operators,
}

/// The pool, as far as the budget is concerned.
pub(crate) trait ElasticPool: Send + Sync {
    /// Changes what the pool may hold; returns what it may hold now, which is more if it cannot give way that far.
    fn set_limit_bytes(&self, bytes: u64) -> u64;
    /// Bytes it holds now.
    fn held_bytes(&self) -> u64;
}

/// Bytes held, by holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Decoded columns.
    pub decoded_bytes: u64,
    /// Operators.
    pub operator_bytes: u64,
    /// What the pool may hold now.
    pub pool_limit_bytes: u64,
}

/// The budget.
pub(crate) struct Memory {
    budget_bytes: u64,
    pool_bytes_min: u64,
    pool_bytes_max: u64,
    /// Locked before the pool, never after it.
    usage: Mutex<MemoryUse>,
    pool: Weak<dyn ElasticPool>,
    /// `usage` without the pool, to be read without its lock.
    outside_bytes: AtomicU64,
    /// The most bytes of all kinds held at once so far.
    held_bytes_max: AtomicU64,
    /// Told whenever memory is given back.
    pub(crate) freed: Notify,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("budget_bytes", &self.budget_bytes)
            .field("usage", &self.usage())
            .finish()
    }
}

impl Memory {
    pub(crate) fn new(options: &Options, pool: Weak<dyn ElasticPool>) -> Self {
        let usage = MemoryUse { pool_limit_bytes: options.pool_bytes, ..MemoryUse::default() };
        Self {
            budget_bytes: options.memory_bytes,
            pool_bytes_min: options.pool_bytes_min.min(options.pool_bytes),
            pool_bytes_max: options.pool_bytes,
            usage: Mutex::new(usage),
            pool,
            outside_bytes: AtomicU64::new(0),
            held_bytes_max: AtomicU64::new(0),
            freed: Notify::new(),
        }
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    pub(crate) fn usage(&self) -> MemoryUse {
        *self.lock()
    }

    /// The most bytes of all kinds held at once so far.
    pub(crate) fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max.load(Ordering::Relaxed)
    }

    /// Notes how much the pool holds, for the peak.
    pub(crate) fn note_pool_held(&self, pool_bytes: u64) {
        let held_bytes = self.outside_bytes.load(Ordering::Relaxed) + pool_bytes;
        self.held_bytes_max.fetch_max(held_bytes, Ordering::Relaxed);
    }

    /// Takes memory if the budget has it or the pool can give it.
    pub(crate) fn try_take(&self, holder: Holder, bytes: u64) -> bool {
        let mut usage = self.lock();
        let outside_bytes = usage.outside_bytes().saturating_add(bytes);
        let Some(left_bytes) = self.budget_bytes.checked_sub(outside_bytes) else { return false };
        if left_bytes < usage.pool_limit_bytes {
            if left_bytes < self.pool_bytes_min {
                return false;
            }
            self.resize_pool(&mut usage, left_bytes);
            if usage.pool_limit_bytes > left_bytes {
                self.regrow_pool(&mut usage);
                return false;
            }
        }
        self.add(&mut usage, holder, bytes);
        true
    }

    /// Takes memory that is in use already, whatever the budget says; the pool gives way as far as it can.
    pub(crate) fn take(&self, holder: Holder, bytes: u64) {
        let mut usage = self.lock();
        self.add(&mut usage, holder, bytes);
        let left_bytes = self.budget_bytes.saturating_sub(usage.outside_bytes());
        if left_bytes < usage.pool_limit_bytes {
            self.resize_pool(&mut usage, left_bytes.max(self.pool_bytes_min));
        }
    }

    /// Gives memory back.
    pub(crate) fn give(&self, holder: Holder, bytes: u64) {
        let mut usage = self.lock();
        let held = usage.held(holder);
        *held = held.checked_sub(bytes).expect("memory given back was taken");
        self.outside_bytes.store(usage.outside_bytes(), Ordering::Relaxed);
        self.regrow_pool(&mut usage);
        drop(usage);
        self.freed.notify_waiters();
    }

    fn add(&self, usage: &mut MemoryUse, holder: Holder, bytes: u64) {
        *usage.held(holder) += bytes;
        self.outside_bytes.store(usage.outside_bytes(), Ordering::Relaxed);
        self.note_pool_held(self.pool.upgrade().map_or(0, |pool| pool.held_bytes()));
    }

    fn resize_pool(&self, usage: &mut MemoryUse, bytes: u64) {
        if let Some(pool) = self.pool.upgrade() {
            usage.pool_limit_bytes = pool.set_limit_bytes(bytes);
        }
    }

    /// Gives the pool what is left, in steps that are worth it.
    fn regrow_pool(&self, usage: &mut MemoryUse) {
        let left_bytes =
            self.budget_bytes.saturating_sub(usage.outside_bytes()).min(self.pool_bytes_max);
        let step_bytes = self.pool_bytes_max / 64;
        if left_bytes > usage.pool_limit_bytes
            && (left_bytes == self.pool_bytes_max
                || left_bytes - usage.pool_limit_bytes > step_bytes)
        {
            self.resize_pool(usage, left_bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryUse> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryUse {
    fn outside_bytes(&self) -> u64 {
        self.decoded_bytes + self.operator_bytes
    }

    fn held(&mut self, holder: Holder) -> &mut u64 {
        match holder {
            Holder::Decoded => &mut self.decoded_bytes,
            Holder::Operators => &mut self.operator_bytes,
        }
    }
}

/// Memory taken for a column that is about to be decoded. What the arrays turn out to need is charged to their
/// buffers; the rest goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<Memory>,
    bytes: Mutex<u64>,
}

impl Reservation {
    /// Takes memory for decoding if there is some.
    pub(crate) fn try_new(memory: &Arc<Memory>, bytes: u64) -> Option<Self> {
        memory
            .try_take(Holder::Decoded, bytes)
            .then(|| Self { memory: Arc::clone(memory), bytes: Mutex::new(bytes) })
    }

    /// Charges the buffers of an array to the budget until the last reference to them is gone.
    pub(crate) fn charge(&self, array: &ArrayRef) {
        array.claim(self);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let left = *self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        self.memory.give(Holder::Decoded, left);
    }
}

impl MemoryPool for Reservation {
    fn reserve(&self, size: usize) -> Box<dyn MemoryReservation> {
        let wanted = size as u64;
        let mut left = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let covered = wanted.min(*left);
        *left -= covered;
        drop(left);
        if wanted > covered {
            self.memory.take(Holder::Decoded, wanted - covered);
        }
        Box::new(Charge { memory: Arc::clone(&self.memory), bytes: wanted })
    }

    fn available(&self) -> isize {
        let left = *self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        isize::try_from(left).unwrap_or(isize::MAX)
    }

    fn used(&self) -> usize {
        usize::try_from(self.memory.usage().decoded_bytes).unwrap_or(usize::MAX)
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.memory.budget_bytes()).unwrap_or(usize::MAX)
    }
}

/// Bytes of one buffer.
#[derive(Debug)]
struct Charge {
    memory: Arc<Memory>,
    bytes: u64,
}

impl MemoryReservation for Charge {
    fn size(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    fn resize(&mut self, new_size: usize) {
        let new_bytes = new_size as u64;
        if new_bytes > self.bytes {
            self.memory.take(Holder::Decoded, new_bytes - self.bytes);
        } else {
            self.memory.give(Holder::Decoded, self.bytes - new_bytes);
        }
        self.bytes = new_bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.give(Holder::Decoded, self.bytes);
    }
}

/// The part of the budget that operators of queries draw on.
#[derive(Clone, Debug)]
pub struct OperatorMemory {
    pub(crate) memory: Arc<Memory>,
}

impl OperatorMemory {
    /// Takes memory if the budget has it or the pool can give it; false if not.
    #[must_use]
    pub fn try_take(&self, bytes: u64) -> bool {
        self.memory.try_take(Holder::Operators, bytes)
    }

    /// Takes memory that is in use already, whatever the budget says.
    pub fn take(&self, bytes: u64) {
        self.memory.take(Holder::Operators, bytes);
    }

    /// Gives memory back.
    ///
    /// # Panics
    /// If more is given back than was taken.
    pub fn give(&self, bytes: u64) {
        self.memory.give(Holder::Operators, bytes);
    }

    /// Bytes that operators hold.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.memory.usage().operator_bytes
    }

    /// The whole budget in bytes.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.memory.budget_bytes()
    }
}
