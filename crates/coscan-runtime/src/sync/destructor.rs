//! Destructors never lock the state: a check in debug builds.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The mark of the body of a destructor, as long as it is held. In debug builds, locking the manager's state meanwhile
/// panics: a destructor runs wherever a query drops something, also under locks of its own, and would wait there for
/// all scans.
pub(crate) struct InDestructor {
    before: usize,
    /// The mark is of this thread, so the guard must stay on it.
    not_send: PhantomData<*const ()>,
}

impl InDestructor {
    pub(crate) fn enter() -> Self {
        Self::set(|before| before + 1)
    }

    /// An exception, as long as it is held: the runtime is gone, and with it the task that would have done it instead.
    pub(crate) fn except() -> Self {
        Self::set(|_| 0)
    }

    fn set(depth: impl Fn(usize) -> usize) -> Self {
        // While a thread ends the variable may no longer exist.
        let before = DEPTH.try_with(|current| current.replace(depth(current.get()))).unwrap_or(0);
        Self { before, not_send: PhantomData }
    }

    /// # Panics
    /// In debug builds, if called within a destructor.
    pub(crate) fn check() {
        debug_assert_eq!(DEPTH.try_with(Cell::get).unwrap_or(0), 0, "a destructor locks the state");
    }
}

impl Drop for InDestructor {
    fn drop(&mut self) {
        DEPTH.try_with(|depth| depth.set(self.before)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a destructor locks the state")]
    fn locking_within_a_destructor_panics() {
        let _one = InDestructor::enter();
        drop(InDestructor::enter());
        InDestructor::check();
    }

    #[test]
    fn it_ends_with_the_destructor() {
        let one = InDestructor::enter();
        drop(InDestructor::except());
        drop(one);
        InDestructor::check();
    }
}
