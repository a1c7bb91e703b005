//! The bell that wakes the pump. It is rung by code that has left the pump something to do.

use std::time::Duration;

use tokio::sync::Notify;

/// A bell that wakes the pump, the task that does what others must not do themselves. Ringing takes no lock of the
/// runtime and calls nothing but the pump's own waker, so a destructor may ring. Any number of rings before the pump
/// listens count as one.
#[derive(Debug, Default)]
pub(crate) struct Bell(Notify);

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.notify_one();
    }

    /// Waits until it rings, at most for this time. Timers are on the runtime that polls.
    pub(crate) async fn listen(&self, at_most: Option<Duration>) {
        match at_most {
            None => self.0.notified().await,
            // In either case the pump looks for something to do.
            Some(time) => drop(tokio::time::timeout(time, self.0.notified()).await),
        }
    }
}
