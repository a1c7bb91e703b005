//! Messages that others have posted for the owner of the state.

use std::sync::PoisonError;

use crate::sync::bell::Bell;
use crate::sync::{Mutex, MutexGuard};

/// Messages in the order in which they came. It needs no bound: a message is the end of something that was counted when
/// it began.
///
/// Each is applied without delay: by the owner before it releases the lock, by a thread that becomes the owner, or by
/// the pump, for which the bell rings.
#[derive(Debug)]
pub(super) struct Inbox<M>(Mutex<Vec<M>>);

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M> Inbox<M> {
    /// Posts a message. Never waits, and does not become the owner.
    pub(super) fn post(&self, message: M, bell: &Bell) {
        if self.push(message) {
            bell.ring();
        }
    }

    /// Posts a message that is applied at once: by `try_own`, or by another thread if that owns the state.
    pub(super) fn offer(&self, message: M, try_own: impl FnOnce()) {
        self.push(message);
        if !self.is_empty() {
            try_own(); // If it fails, the owner has still to let go.
        }
    }

    /// Called when the owner has released the lock. Messages that were offered since it last looked are left to the
    /// pump.
    pub(super) fn release(&self, bell: &Bell) {
        if !self.is_empty() {
            bell.ring();
        }
    }

    /// Swaps all messages for an empty list, whose allocation is used for the next ones.
    pub(super) fn swap(&self, empty: &mut Vec<M>) {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut *self.lock(), empty);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Adds a message. Returns true if the inbox was empty before.
    fn push(&self, message: M) -> bool {
        let mut messages = self.lock();
        messages.push(message);
        messages.len() == 1
    }

    fn lock(&self) -> MutexGuard<'_, Vec<M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tests under random schedules, see [`crate::sync`].
#[cfg(all(test, feature = "shuttle"))]
#[allow(clippy::unwrap_used)]
mod model {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{RUNS, check};
    use shuttle::future::block_on;
    use shuttle::thread;

    const SENDERS: u32 = 3;
    const MESSAGES: u32 = 3;

    /// The sender of a message, and its number.
    type Message = (u32, u32);

    /// A state that records what was applied to it.
    #[derive(Default)]
    struct World {
        inbox: Inbox<Message>,
        applied: Mutex<Vec<Message>>,
        expected: usize,
        bell: Bell,
    }

    impl World {
        fn own(&self, mut applied: MutexGuard<'_, Vec<Message>>) -> usize {
            let mut messages = Vec::new();
            self.inbox.swap(&mut messages);
            applied.append(&mut messages);
            let count = applied.len();
            drop(applied);
            self.inbox.release(&self.bell);
            if count == self.expected {
                self.bell.ring(); // The pump may end.
            }
            count
        }

        fn offer(&self, message: Message) {
            self.inbox.offer(message, || {
                if let Ok(applied) = self.applied.try_lock() {
                    self.own(applied);
                }
            });
        }

        /// Applies messages until all have been applied.
        async fn pump(&self) {
            while self.own(self.applied.lock().unwrap()) < self.expected {
                self.bell.listen(None).await;
            }
        }
    }

    #[test]
    fn every_message_is_applied_once_and_those_of_a_thread_in_order() {
        check(RUNS, || {
            let expected = (SENDERS * MESSAGES) as usize;
            let world = Arc::new(World { expected, ..World::default() });
            let senders = (0..SENDERS).map(|sender| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    for message in (0..MESSAGES).map(|number| (sender, number)) {
                        match sender {
                            0 => world.inbox.post(message, &world.bell),
                            _ => world.offer(message),
                        }
                    }
                })
            });
            let senders: Vec<_> = senders.collect();
            block_on(world.pump());
            senders.into_iter().for_each(|sender| sender.join().unwrap());
            let applied = world.applied.lock().unwrap().clone();
            for sender in 0..SENDERS {
                let of_sender = applied.iter().filter(|message| message.0 == sender);
                assert!(of_sender.map(|message| message.1).eq(0..MESSAGES), "{applied:?}");
            }
        });
    }
}
