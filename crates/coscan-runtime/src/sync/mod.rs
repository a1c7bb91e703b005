//! Synchronization of threads: the bell that wakes the pump, and the mark of destructors, which never lock the state.
//!
//! The state that threads share outside of the lock are the inbox, credit and the slots of answers. These are built of
//! the types below, so that a model checker can run them under random schedules: `cargo test -p coscan-runtime-model`.

pub(crate) mod bell;
pub(crate) mod destructor;

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

/// The number of random schedules that a test runs.
#[cfg(all(test, feature = "shuttle"))]
pub(crate) const RUNS: usize = 10_000;

/// Runs a test under this many schedules. Half of them are random; half have few changes of thread, which finds rare
/// orders sooner [Burckhardt et al.: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, 2010].
#[cfg(all(test, feature = "shuttle"))]
pub(crate) fn check(runs: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), runs / 2);
    shuttle::check_pct(test, runs / 2, 3);
}
