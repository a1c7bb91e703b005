//! One budget for everything held: stored pages, decoded columns, metadata of files, operators.
//!
//! The pool has what the others leave it, up to its own limit and down to its floor: when decoding or an operator needs
//! memory, the pool gives way at once; when they give it back, the pool grows again. Decoded columns are counted as
//! long as anybody references their buffers, a query that passed them on among them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::driver::Driver;
use crate::options::Options;
use crate::waiting::Line;

/// The pool grows by no less than this part of the most that it may hold.
const STEPS: u64 = 64;

/// Who holds memory outside of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Decoded,
    Operators,
    Footers,
}

/// The pool, as far as the budget is concerned.
pub(crate) trait ElasticPool: Send + Sync {
    /// Changes what the pool may hold; returns what it may hold now, which is more if it cannot give way that far.
    fn set_limit_bytes(&self, bytes: u64) -> u64;
    /// Bytes it holds now.
    fn held_bytes(&self) -> u64;
    /// A number that has changed if the pool may be able to give way further than before.
    fn generation(&self) -> u64;
    /// Does what follows from a new limit. Called without the lock of the budget.
    fn settle(&self);
    /// Memory was given back: whoever waits for some may have it. Called without the lock of the budget.
    fn freed(&self);
}

/// Memory was refused because so many bytes are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) bytes: u64,
}

/// Bytes held, by holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Decoded columns.
    pub decoded_bytes: u64,
    /// Operators.
    pub operator_bytes: u64,
    /// Metadata: footers and page indexes of open files, and Bloom filters.
    pub footer_bytes: u64,
    /// What the pool may hold now.
    pub pool_limit_bytes: u64,
}

/// The budget.
pub(crate) struct Memory {
    budget_bytes: u64,
    pool_bytes_min: u64,
    /// Locked before the pool, never after it.
    state: Mutex<State>,
    pool: Weak<dyn ElasticPool>,
    /// What is held outside of the pool, to be read without the lock.
    outside_bytes: AtomicU64,
    /// The most bytes of all kinds held at once so far.
    held_bytes_max: AtomicU64,
    /// Told whenever memory is given back.
    pub(crate) freed: Notify,
    /// Who waits for memory to decode.
    pub(crate) line: Line,
}

#[derive(Debug)]
struct State {
    usage: MemoryUse,
    /// The most that the pool may hold, whatever the others leave it.
    pool_bytes_max: u64,
    /// Whether the pool has something to do once the lock is given back.
    pool_resized: bool,
    /// The limit that the pool could not go below, and its generation at that time.
    refused: Option<(u64, u64)>,
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
            pool_bytes_min: options.pool_bytes_min,
            state: Mutex::new(State {
                usage,
                pool_bytes_max: options.pool_bytes,
                pool_resized: false,
                refused: None,
            }),
            pool,
            outside_bytes: AtomicU64::new(0),
            held_bytes_max: AtomicU64::new(0),
            freed: Notify::new(),
            line: Line::new(options.memory_timeout),
        }
    }

    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// What decoding and operators can have at most, when nobody else has any.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.budget_bytes - self.floor_bytes(&self.lock())
    }

    pub(crate) fn usage(&self) -> MemoryUse {
        self.lock().usage
    }

    /// The most bytes of all kinds held at once so far.
    pub(crate) fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max.load(Ordering::Relaxed)
    }

    /// Notes how much the pool holds, for the peak. Called while the pool cannot change: else the sum could be one that
    /// never was.
    pub(crate) fn note_pool_held(&self, pool_bytes: u64) {
        let held_bytes = self.outside_bytes.load(Ordering::Relaxed) + pool_bytes;
        self.held_bytes_max.fetch_max(held_bytes, Ordering::Relaxed);
    }

    /// Takes memory if the budget has it or the pool can give it.
    ///
    /// # Errors
    /// How much is missing.
    pub(crate) fn try_take(&self, holder: Holder, bytes: u64) -> Result<(), Missing> {
        if bytes == 0 {
            // Whoever needs nothing goes on, however short memory is: that may be what frees some.
            return Ok(());
        }
        self.change(|state| {
            let wanted_bytes = state.usage.outside_bytes().saturating_add(bytes);
            let left_bytes = self.budget_bytes.saturating_sub(wanted_bytes);
            let over_bytes = wanted_bytes - wanted_bytes.min(self.budget_bytes);
            let least_bytes = match left_bytes < state.usage.pool_limit_bytes {
                true => self.shrink_pool(state, left_bytes),
                false => 0,
            };
            match over_bytes + least_bytes.saturating_sub(left_bytes) {
                0 => {
                    self.add(state, holder, bytes);
                    Ok(())
                }
                bytes => Err(Missing { bytes }),
            }
        })
    }

    /// Makes the pool as small as this, or tells how small it may be at least if that is more.
    fn shrink_pool(&self, state: &mut State, bytes: u64) -> u64 {
        let floor_bytes = self.floor_bytes(state);
        if bytes < floor_bytes {
            return floor_bytes;
        }
        let generation = self.pool.upgrade().map_or(0, |pool| pool.generation());
        if let Some((least_bytes, at)) = state.refused
            && at == generation
            && bytes < least_bytes
        {
            return least_bytes;
        }
        // A little more than asked for: to take memory in small pieces is not to move the pool each time.
        let target_bytes = bytes - (state.pool_bytes_max / STEPS / 2).min(bytes - floor_bytes);
        self.resize_pool(state, target_bytes);
        let least_bytes = state.usage.pool_limit_bytes;
        if least_bytes > bytes {
            state.refused = Some((least_bytes, generation));
            self.fit_pool(state);
        }
        least_bytes
    }

    /// Takes memory that is in use already, whatever the budget says; the pool gives way as far as it can.
    pub(crate) fn take(&self, holder: Holder, bytes: u64) {
        if bytes > 0 {
            self.change(|state| {
                let left_bytes = self.left_bytes(state).saturating_sub(bytes);
                if left_bytes < state.usage.pool_limit_bytes {
                    self.resize_pool(state, left_bytes.max(self.floor_bytes(state)));
                }
                self.add(state, holder, bytes);
            });
        }
    }

    /// Gives memory back.
    pub(crate) fn give(&self, holder: Holder, bytes: u64) {
        if bytes > 0 {
            self.change(|state| {
                let held = state.usage.held(holder);
                *held = held.checked_sub(bytes).expect("memory given back was taken");
                self.outside_bytes.store(state.usage.outside_bytes(), Ordering::Relaxed);
                self.fit_pool(state);
            });
            self.freed.notify_waiters();
            if !self.line.is_empty()
                && let Some(pool) = self.pool.upgrade()
            {
                pool.freed();
            }
        }
    }

    /// Gives the pool what it may have now.
    ///
    /// # Errors
    /// How much is missing to what is asked for.
    pub(crate) fn grow_pool(&self, bytes: u64) -> Result<(), Missing> {
        self.change(|state| {
            let left_bytes = self.left_bytes(state).min(state.pool_bytes_max);
            if left_bytes > state.usage.pool_limit_bytes {
                self.resize_pool(state, left_bytes);
            }
            match bytes.saturating_sub(state.usage.pool_limit_bytes) {
                0 => Ok(()),
                bytes => Err(Missing { bytes }),
            }
        })
    }

    /// The most that the pool may hold.
    pub(crate) fn pool_bytes_max(&self) -> u64 {
        self.lock().pool_bytes_max
    }

    /// Changes the most that the pool may hold, and what it may hold now.
    pub(crate) fn set_pool_bytes_max(&self, bytes: u64) {
        self.change(|state| {
            state.pool_bytes_max = bytes;
            let share_bytes = self.pool_share_bytes(state);
            self.resize_pool(state, share_bytes);
        });
    }

    /// Changes who holds what, then lets the pool do what follows from it: that takes other locks.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let pool_resized = std::mem::take(&mut state.pool_resized);
        drop(state);
        if pool_resized && let Some(pool) = self.pool.upgrade() {
            pool.settle();
        }
        result
    }

    /// What the pool may hold at most, because others hold the rest.
    fn left_bytes(&self, state: &State) -> u64 {
        self.budget_bytes.saturating_sub(state.usage.outside_bytes())
    }

    /// What the pool keeps however much the others need.
    fn floor_bytes(&self, state: &State) -> u64 {
        self.pool_bytes_min.min(state.pool_bytes_max)
    }

    /// What the pool is to have now.
    fn pool_share_bytes(&self, state: &State) -> u64 {
        self.left_bytes(state).clamp(self.floor_bytes(state), state.pool_bytes_max)
    }

    fn add(&self, state: &mut State, holder: Holder, bytes: u64) {
        *state.usage.held(holder) += bytes;
        self.outside_bytes.store(state.usage.outside_bytes(), Ordering::Relaxed);
        self.note_pool_held(self.pool.upgrade().map_or(0, |pool| pool.held_bytes()));
    }

    fn resize_pool(&self, state: &mut State, bytes: u64) {
        if let Some(pool) = self.pool.upgrade() {
            state.usage.pool_limit_bytes = pool.set_limit_bytes(bytes);
            state.pool_resized = true;
        }
    }

    /// Gives the pool what is left, in steps that are worth it, or takes what is too much.
    fn fit_pool(&self, state: &mut State) {
        let left_bytes = self.pool_share_bytes(state);
        let (limit_bytes, step_bytes) =
            (state.usage.pool_limit_bytes, state.pool_bytes_max / STEPS);
        let is_whole = left_bytes == state.pool_bytes_max && limit_bytes < left_bytes;
        if is_whole || left_bytes < limit_bytes || left_bytes - limit_bytes > step_bytes {
            self.resize_pool(state, left_bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryUse {
    fn outside_bytes(&self) -> u64 {
        self.decoded_bytes + self.operator_bytes + self.footer_bytes
    }

    fn held(&mut self, holder: Holder) -> &mut u64 {
        match holder {
            Holder::Decoded => &mut self.decoded_bytes,
            Holder::Operators => &mut self.operator_bytes,
            Holder::Footers => &mut self.footer_bytes,
        }
    }
}

/// The part of the budget that operators of queries draw on.
#[derive(Clone, Debug)]
pub struct OperatorMemory {
    pub(crate) driver: Arc<Driver>,
}

impl OperatorMemory {
    /// Takes memory if the budget has it, or the pool or the columns that are kept decoded can give it; false if not,
    /// and then no column goes for it.
    #[must_use]
    pub fn try_take(&self, bytes: u64) -> bool {
        loop {
            let Err(missing) = self.driver.memory().try_take(Holder::Operators, bytes) else {
                return true;
            };
            if !self.driver.make_room_of_all(missing) {
                return false;
            }
        }
    }

    /// Takes memory that is in use already, whatever the budget says.
    pub fn take(&self, bytes: u64) {
        self.driver.memory().take(Holder::Operators, bytes);
    }

    /// Gives memory back.
    ///
    /// # Panics
    /// If more is given back than was taken.
    pub fn give(&self, bytes: u64) {
        self.driver.memory().give(Holder::Operators, bytes);
    }

    /// Bytes that operators hold.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.driver.memory().usage().operator_bytes
    }

    /// The whole budget in bytes.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.driver.memory().budget_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A pool that can give way to `least_bytes`, and counts how often it is asked to change.
    #[derive(Debug)]
    struct Pool {
        least_bytes: AtomicU64,
        generation: AtomicU64,
        asked: AtomicU64,
    }

    impl ElasticPool for Pool {
        fn set_limit_bytes(&self, bytes: u64) -> u64 {
            self.asked.fetch_add(1, Ordering::Relaxed);
            bytes.max(self.least_bytes.load(Ordering::Relaxed))
        }

        fn held_bytes(&self) -> u64 {
            0
        }

        fn generation(&self) -> u64 {
            self.generation.load(Ordering::Relaxed)
        }

        fn settle(&self) {}

        fn freed(&self) {}
    }

    impl Pool {
        fn asked(&self) -> u64 {
            self.asked.swap(0, Ordering::Relaxed)
        }
    }

    const POOL_BYTES: u64 = 64_000;

    fn memory(least_bytes: u64) -> (Memory, Arc<Pool>) {
        let least_bytes = AtomicU64::new(least_bytes);
        let pool = Pool { least_bytes, generation: AtomicU64::new(0), asked: AtomicU64::new(0) };
        let pool = Arc::new(pool);
        let weak = Arc::downgrade(&pool);
        (Memory::new(&Options::with_pool_bytes(POOL_BYTES, 1_000), weak), pool)
    }

    #[test]
    fn memory_taken_and_given_in_small_pieces_does_not_move_the_pool_each_time() {
        let (memory, pool) = memory(0);
        memory.try_take(Holder::Operators, 1_000).unwrap();
        assert_eq!(pool.asked(), 0, "that was free");
        for _ in 0..5_000 {
            memory.try_take(Holder::Operators, 10).unwrap();
        }
        assert!((1..200).contains(&pool.asked()));
        let floor_bytes = POOL_BYTES / 8;
        assert!(memory.usage().pool_limit_bytes >= floor_bytes);
        for _ in 0..5_000 {
            memory.give(Holder::Operators, 10);
        }
        assert!((1..200).contains(&pool.asked()));
    }

    #[test]
    fn a_pool_that_cannot_give_way_is_asked_again_when_it_may_be_able_to() {
        let (memory, pool) = memory(60_000);
        for _ in 0..10 {
            let refused = memory.try_take(Holder::Decoded, 6_000);
            assert_eq!(refused, Err(Missing { bytes: 1_000 }));
        }
        assert!(pool.asked() <= 2, "to shrink, and to grow back");
        assert_eq!(memory.usage().pool_limit_bytes, POOL_BYTES);
        memory.try_take(Holder::Decoded, 5_000).unwrap();
        memory.give(Holder::Decoded, 5_000);

        pool.least_bytes.store(0, Ordering::Relaxed);
        assert!(memory.try_take(Holder::Decoded, 6_000).is_err(), "nothing happened since");
        pool.generation.store(1, Ordering::Relaxed);
        memory.try_take(Holder::Decoded, 6_000).unwrap();
    }

    #[test]
    fn what_is_beyond_the_budget_is_missing_whatever_the_pool_gives() {
        let (memory, pool) = memory(0);
        let all_bytes = POOL_BYTES + 1_000;
        let missing = memory.try_take(Holder::Operators, all_bytes + 5).unwrap_err();
        assert_eq!(missing, Missing { bytes: 5 + POOL_BYTES / 8 });
        assert_eq!(pool.asked(), 0);
    }
}
