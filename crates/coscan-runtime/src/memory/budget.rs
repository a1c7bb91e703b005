//! The budget itself: bytes by holder, and a pool that gives way to the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::pool_limits::PoolLimits;
use super::usage::{Holder, MemoryUse};
use crate::options::Options;

/// The pool, as far as the budget is concerned.
pub(crate) trait ElasticPool: Send + Sync {
    /// Changes the pool's limit. Returns the new one, which is higher than asked for if the pool cannot shrink that far.
    fn set_limit_bytes(&self, bytes: u64) -> u64;
    /// Bytes it holds now.
    fn held_bytes(&self) -> u64;
    /// Changes whenever the pool may have become able to shrink further.
    fn generation(&self) -> u64;
    /// Does what follows from a new limit. Called without the lock of the budget.
    fn settle(&self);
    /// Memory was returned: requests that wait for some may have it. Called without the lock of the budget.
    fn memory_freed(&self);
}

/// Memory was refused: the number of missing bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) bytes: u64,
}

/// The budget.
pub(crate) struct MemoryBudget {
    budget_bytes: u64,
    /// Locked before the pool, never after it.
    state: Mutex<State>,
    pool: Weak<dyn ElasticPool>,
    /// Held outside of the pool; can be read without the lock.
    outside_bytes: AtomicU64,
    held_bytes_max: AtomicU64,
    /// Notified whenever memory is returned.
    pub(crate) freed: Notify,
}

#[derive(Debug)]
struct State {
    usage: MemoryUse,
    limits: PoolLimits,
    pool_limit_bytes: u64,
    /// The pool has to settle once the lock is released.
    pool_resized: bool,
    refusal: Option<Refusal>,
}

/// The pool could not shrink as far as it was asked to.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// The limit that it could not go below.
    limit_bytes: u64,
    /// The pool's generation at that time.
    generation: u64,
}

impl State {
    fn left_bytes(&self) -> u64 {
        self.limits.left_bytes(self.usage.total_bytes())
    }

    fn target_bytes(&self) -> u64 {
        self.limits.target_bytes(self.usage.total_bytes())
    }
}

impl std::fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBudget").field("state", &self.state).finish_non_exhaustive()
    }
}

impl MemoryBudget {
    pub(crate) fn new(options: &Options, pool: Weak<dyn ElasticPool>) -> Self {
        Self {
            budget_bytes: options.memory_bytes,
            state: Mutex::new(State {
                usage: MemoryUse::default(),
                limits: PoolLimits::new(options),
                pool_limit_bytes: options.pool_bytes,
                pool_resized: false,
                refusal: None,
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

    /// The most that the holders outside of the pool can have together.
    pub(crate) fn outside_bytes_max(&self) -> u64 {
        self.lock().limits.outside_bytes_max()
    }

    pub(crate) fn usage(&self) -> MemoryUse {
        self.lock().usage
    }

    /// The most bytes of all kinds held at once so far.
    pub(crate) fn held_bytes_max(&self) -> u64 {
        self.held_bytes_max.load(Ordering::Relaxed)
    }

    /// Notes what the pool holds, for the peak. Call it while the pool cannot change: else the sum may never have been
    /// held at once.
    pub(crate) fn note_pool_held(&self, pool_bytes: u64) {
        let held_bytes = self.outside_bytes.load(Ordering::Relaxed) + pool_bytes;
        self.held_bytes_max.fetch_max(held_bytes, Ordering::Relaxed);
    }

    /// Takes memory if the budget has it or the pool can give it.
    ///
    /// # Errors
    /// The missing bytes.
    pub(crate) fn try_take(&self, holder: Holder, bytes: u64) -> Result<(), Missing> {
        if bytes == 0 {
            // Never refused, however short memory is: going on may be what frees some.
            return Ok(());
        }
        self.change(|state| {
            let needed_bytes = state.usage.total_bytes().saturating_add(bytes);
            let left_bytes = self.budget_bytes.saturating_sub(needed_bytes);
            let over_bytes = needed_bytes.saturating_sub(self.budget_bytes);
            let pool_bytes = match left_bytes < state.pool_limit_bytes {
                true => self.shrink_pool(state, left_bytes),
                false => 0,
            };
            match over_bytes + pool_bytes.saturating_sub(left_bytes) {
                0 => {
                    self.add(state, holder, bytes);
                    Ok(())
                }
                bytes => Err(Missing { bytes }),
            }
        })
    }

    /// Shrinks the pool to `bytes` or a little less. Returns its limit, or the lowest possible one if that is too
    /// high.
    fn shrink_pool(&self, state: &mut State, bytes: u64) -> u64 {
        let floor_bytes = state.limits.floor_bytes();
        if bytes < floor_bytes {
            return floor_bytes;
        }
        let generation = self.pool.upgrade().map_or(0, |pool| pool.generation());
        if let Some(refusal) = state.refusal
            && refusal.generation == generation
            && bytes < refusal.limit_bytes
        {
            return refusal.limit_bytes;
        }
        self.resize_pool(state, state.limits.with_slack(bytes));
        let limit_bytes = state.pool_limit_bytes;
        if limit_bytes > bytes {
            state.refusal = Some(Refusal { limit_bytes, generation });
            self.fit_pool(state);
        }
        limit_bytes
    }

    /// Takes memory that is in use already, even beyond the budget; the pool gives way as far as it can.
    pub(crate) fn take(&self, holder: Holder, bytes: u64) {
        if bytes > 0 {
            self.change(|state| {
                let left_bytes = state.left_bytes().saturating_sub(bytes);
                if left_bytes < state.pool_limit_bytes {
                    self.resize_pool(state, left_bytes.max(state.limits.floor_bytes()));
                }
                self.add(state, holder, bytes);
            });
        }
    }

    /// Returns memory.
    pub(crate) fn give(&self, holder: Holder, bytes: u64) {
        if bytes > 0 {
            self.change(|state| {
                let held = state.usage.of_mut(holder);
                *held = held.checked_sub(bytes).expect("memory returned was taken");
                self.outside_bytes.store(state.usage.total_bytes(), Ordering::Relaxed);
                self.fit_pool(state);
            });
            self.freed.notify_waiters();
            if let Some(pool) = self.pool.upgrade() {
                pool.memory_freed();
            }
        }
    }

    /// Grows the pool as far as it may now.
    ///
    /// # Errors
    /// The bytes missing to the requested size.
    pub(crate) fn grow_pool(&self, bytes: u64) -> Result<(), Missing> {
        self.change(|state| {
            let left_bytes = state.left_bytes().min(state.limits.ceiling_bytes());
            if left_bytes > state.pool_limit_bytes {
                self.resize_pool(state, left_bytes);
            }
            match bytes.saturating_sub(state.pool_limit_bytes) {
                0 => Ok(()),
                bytes => Err(Missing { bytes }),
            }
        })
    }

    pub(crate) fn pool_ceiling_bytes(&self) -> u64 {
        self.lock().limits.ceiling_bytes()
    }

    /// Changes the pool's ceiling, and resizes the pool to what it may have under it.
    pub(crate) fn set_pool_ceiling_bytes(&self, bytes: u64) {
        self.change(|state| {
            state.limits.set_ceiling_bytes(bytes);
            self.resize_pool(state, state.target_bytes());
        });
    }

    /// Makes a change under the lock, then lets the pool settle, which takes other locks.
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

    fn add(&self, state: &mut State, holder: Holder, bytes: u64) {
        *state.usage.of_mut(holder) += bytes;
        self.outside_bytes.store(state.usage.total_bytes(), Ordering::Relaxed);
        self.note_pool_held(self.pool.upgrade().map_or(0, |pool| pool.held_bytes()));
    }

    fn resize_pool(&self, state: &mut State, bytes: u64) {
        if let Some(pool) = self.pool.upgrade() {
            state.pool_limit_bytes = pool.set_limit_bytes(bytes);
            state.pool_resized = true;
        }
    }

    /// Moves the pool's limit to its target if that is worth it.
    fn fit_pool(&self, state: &mut State) {
        let target_bytes = state.target_bytes();
        if state.limits.is_worth_moving(state.pool_limit_bytes, target_bytes) {
            self.resize_pool(state, target_bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn pool_limit_bytes(&self) -> u64 {
        self.lock().pool_limit_bytes
    }
}
