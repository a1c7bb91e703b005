//! What is behind the driver's lock, while it is held.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::inner::Inner;

/// Holds the lock. If something panics meanwhile, all that runs is given up: core may be half changed, and to go on would
/// be to give wrong rows, or to wait for ever.
pub(super) struct Locked<'a> {
    inner: MutexGuard<'a, Inner>,
    was_panicking: bool,
}

impl<'a> Locked<'a> {
    pub(super) fn new(inner: &'a Mutex<Inner>) -> Self {
        // What a panic has left here was given up at once.
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
