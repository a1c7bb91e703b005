//! What others have posted for the owner of the state.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::message::Message;

/// Messages in the order in which they came. It needs no bound: a message is the end of something that was counted when
/// it began.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Vec<Message>>);

impl Inbox {
    /// True if it was empty before.
    pub(super) fn push(&self, message: Message) -> bool {
        let mut messages = self.lock();
        messages.push(message);
        messages.len() == 1
    }

    /// Swaps all messages for an empty list, whose space is used for the next ones.
    pub(super) fn swap(&self, empty: &mut Vec<Message>) {
        debug_assert!(empty.is_empty());
        std::mem::swap(&mut *self.lock(), empty);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
