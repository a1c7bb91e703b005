//! Operators draw on the budget of the buffer manager: when they need memory, its pool of pages shrinks, down to a
//! floor.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use coscan_runtime::{BufferManager, OperatorMemory};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
    human_readable_size,
};

/// The number of largest consumers that an error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");

/// Operators that can spill may hold three eighths of the limit. The rows of a sort are counted twice, as its own and
/// as the decoded columns that they reference. Another three eighths must therefore be left, and a quarter for
/// operators that cannot spill.
const SPILLING_PARTS: (usize, usize) = (3, 8);

/// A DataFusion memory pool that is part of a buffer manager's budget.
///
/// Operators that cannot spill get memory as long as there is some. Operators that can spill hold at most three eighths
/// of the limit together. Beyond that, an operator is refused more than its even share, so that the first one does not
/// starve the others.
#[derive(Debug)]
pub struct SharedMemoryPool {
    memory: OperatorMemory,
    limit_bytes: usize,
    held_bytes: AtomicUsize,
    spilling: Mutex<Spilling>,
}

/// The operators that can spill, and the bytes that they hold.
#[derive(Debug, Default)]
struct Spilling {
    consumers: usize,
    held_bytes: usize,
}

impl SharedMemoryPool {
    /// Creates the memory pool of a manager.
    #[must_use]
    pub fn new(manager: &BufferManager) -> Self {
        let memory = manager.operator_memory();
        let options = manager.options();
        let floor_bytes = options.pool_bytes_min.min(options.pool_bytes);
        Self {
            limit_bytes: to_usize(memory.budget_bytes().saturating_sub(floor_bytes)),
            memory,
            held_bytes: AtomicUsize::new(0),
            spilling: Mutex::default(),
        }
    }

    /// Returns the pool that all sessions of a manager share. Its errors name the largest consumers.
    #[must_use]
    pub fn of_manager(manager: &BufferManager) -> Arc<dyn MemoryPool> {
        /// The pool holds the manager, so the manager does not hold the pool.
        #[derive(Default)]
        struct SharedPool(Mutex<Option<Weak<dyn MemoryPool>>>);
        let shared = manager.extension(SharedPool::default);
        let mut shared = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = shared.as_ref().and_then(Weak::upgrade) {
            return pool;
        }
        let pool = Self::tracked(manager);
        *shared = Some(Arc::downgrade(&pool));
        pool
    }

    /// Creates a pool whose errors name the largest consumers.
    #[must_use]
    pub fn tracked(manager: &BufferManager) -> Arc<dyn MemoryPool> {
        Arc::new(TrackConsumersPool::new(Self::new(manager), NAMED_CONSUMERS))
    }

    /// Whether a consumer that can spill would exceed its share.
    fn is_over_share(&self, reservation: &MemoryReservation, additional: usize) -> bool {
        if !reservation.consumer().can_spill() {
            return false;
        }
        let spilling = self.spilling();
        let all_bytes = self.limit_bytes / SPILLING_PARTS.1 * SPILLING_PARTS.0;
        let share_bytes = all_bytes / spilling.consumers.max(1);
        spilling.held_bytes.saturating_add(additional) > all_bytes
            && reservation.size().saturating_add(additional) > share_bytes
    }

    fn note_grown(&self, reservation: &MemoryReservation, bytes: usize) {
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        if reservation.consumer().can_spill() {
            self.spilling().held_bytes += bytes;
        }
    }

    fn spilling(&self) -> MutexGuard<'_, Spilling> {
        self.spilling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryPool for SharedMemoryPool {
    fn name(&self) -> &str {
        "coscan"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.spilling().consumers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut spilling = self.spilling();
            spilling.consumers = spilling.consumers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.memory.take(additional as u64);
        self.note_grown(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.held_bytes.fetch_sub(shrink, Ordering::Relaxed);
        if reservation.consumer().can_spill() {
            let mut spilling = self.spilling();
            spilling.held_bytes = spilling.held_bytes.saturating_sub(shrink);
        }
        self.memory.give(shrink as u64);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if self.is_over_share(reservation, additional) || !self.memory.try_take(additional as u64) {
            return Err(refusal(self, reservation, additional));
        }
        self.note_grown(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit_bytes)
    }
}

impl fmt::Display for SharedMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (held, limit) = (self.reserved(), self.limit_bytes);
        let (held, limit) = (human_readable_size(held), human_readable_size(limit));
        write!(f, "{}(used: {held}, limit: {limit})", self.name())
    }
}

fn refusal(
    pool: &SharedMemoryPool,
    reservation: &MemoryReservation,
    additional: usize,
) -> DataFusionError {
    DataFusionError::ResourcesExhausted(format!(
        "Failed to allocate additional {} for {} with {} already allocated for this reservation; operators hold {} of \
         at most {} in coscan's budget, which they share with decoded columns. Give coscan more memory; if \
         several queries run, fewer at once need less",
        human_readable_size(additional),
        reservation.consumer().name(),
        human_readable_size(reservation.size()),
        human_readable_size(pool.reserved()),
        human_readable_size(pool.limit_bytes),
    ))
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
