//! The driver's lock, held.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::inner::Inner;

/// Holds the lock. If a panic unwinds meanwhile, all scans are given up: core may be half changed, and going on could give
/// wrong rows or wait for ever.
pub(super) struct Locked<'a> {
    inner: MutexGuard<'a, Inner>,
    was_panicking: bool,
}

impl<'a> Locked<'a> {
    pub(super) fn new(inner: &'a Mutex<Inner>) -> Self {
        // After a panic the contents were given up at once: the lock may be taken.
        let inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        Self { inner, was_panicking: std::thread::panicking() }
    }
}

impl Deref for Locked<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if !self.was_panicking && std::thread::panicking() {
            self.inner.break_off();
        }
    }
}
