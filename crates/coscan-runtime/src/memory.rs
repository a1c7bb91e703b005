//! One budget for everything held: stored pages, decoded columns, operators.
//!
//! The pool has what the others leave it, up to its own limit and down to its floor: when decoding or an operator needs
//! memory, the pool gives way at once; when they give it back, the pool grows again. Decoded columns are counted as
//! long as anybody references their buffers, a query that passed them on among them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::driver::Driver;
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
    /// Does what follows from a new limit. Called without the lock of the budget.
    fn settle(&self);
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
    /// Locked before the pool, never after it.
    state: Mutex<State>,
    pool: Weak<dyn ElasticPool>,
    /// What is held outside of the pool, to be read without the lock.
    outside_bytes: AtomicU64,
    /// The most bytes of all kinds held at once so far.
    held_bytes_max: AtomicU64,
    /// Told whenever memory is given back.
    pub(crate) freed: Notify,
}

#[derive(Debug)]
struct State {
    usage: MemoryUse,
    /// The most that the pool may hold, whatever the others leave it.
    pool_bytes_max: u64,
    /// Whether the pool has something to do once the lock is given back.
    pool_resized: bool,
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
            }),
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
    pub(crate) fn try_take(&self, holder: Holder, bytes: u64) -> bool {
        // Whoever needs nothing goes on, however short memory is: that may be what frees some.
        bytes == 0
            || self.change(|state| {
                let left_bytes = self.left_bytes(state).checked_sub(bytes);
                let Some(left_bytes) = left_bytes else { return false };
                if left_bytes < state.usage.pool_limit_bytes {
                    if left_bytes < self.floor_bytes(state) {
                        return false;
                    }
                    self.resize_pool(state, left_bytes);
                    if state.usage.pool_limit_bytes > left_bytes {
                        self.fit_pool(state);
                        return false;
                    }
                }
                self.add(state, holder, bytes);
                true
            })
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
        }
    }

    /// Gives the pool what it may have now; true if that is as much as asked for.
    pub(crate) fn grow_pool(&self, bytes: u64) -> bool {
        self.change(|state| {
            let left_bytes = self.left_bytes(state).min(state.pool_bytes_max);
            if left_bytes > state.usage.pool_limit_bytes {
                self.resize_pool(state, left_bytes);
            }
            state.usage.pool_limit_bytes >= bytes
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
        let (limit_bytes, step_bytes) = (state.usage.pool_limit_bytes, state.pool_bytes_max / 64);
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
        self.decoded_bytes + self.operator_bytes
    }

    fn held(&mut self, holder: Holder) -> &mut u64 {
        match holder {
            Holder::Decoded => &mut self.decoded_bytes,
            Holder::Operators => &mut self.operator_bytes,
        }
    }
}

/// The part of the budget that operators of queries draw on.
#[derive(Clone, Debug)]
pub struct OperatorMemory {
    pub(crate) driver: Arc<Driver>,
}

impl OperatorMemory {
    /// Takes memory if the budget has it, or the pool or the columns that are kept decoded can give it; false if not.
    #[must_use]
    pub fn try_take(&self, bytes: u64) -> bool {
        loop {
            if self.driver.memory().try_take(Holder::Operators, bytes) {
                return true;
            }
            if !self.driver.drop_least_wanted(usize::MAX) {
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
