//! Waiting for a record without a thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::leader::Shared;
use crate::error::LogError;
use crate::lsn::Lsn;

/// A future that is ready when a record is durable or the log has failed. Nothing is written for it before it is polled.
#[must_use = "nothing is written for a future that nobody awaits"]
pub struct Commit {
    shared: Arc<Shared>,
    lsn: Lsn,
    /// The number under which the waker is registered.
    waker: Option<u64>,
}

impl Commit {
    pub(super) fn new(shared: Arc<Shared>, lsn: Lsn) -> Self {
        Self { shared, lsn, waker: None }
    }
}

impl Future for Commit {
    type Output = Result<(), LogError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if let Some(outcome) = state.outcome(self.lsn) {
            return Poll::Ready(outcome);
        }
        let number = *self.waker.get_or_insert_with(|| state.new_waker());
        let replaced = state.wakers.insert((self.lsn, number), context.waker().clone());
        let has_job = std::mem::replace(&mut state.has_job, true);
        // Without the lock: a waker may drop anything, and a job may run at once.
        drop(state);
        drop(replaced);
        if !has_job {
            let job = Writing { shared: Arc::clone(&shared), is_over: false };
            (shared.executor)(Box::new(|| job.run()));
        }
        Poll::Pending
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        if let Some(number) = self.waker {
            // The lock ends with the statement, before the waker is dropped.
            let _waker = self.shared.state().wakers.remove(&(self.lsn, number));
        }
    }
}

/// The job that writes for async callers for as long as there are any.
struct Writing {
    shared: Arc<Shared>,
    is_over: bool,
}

impl Writing {
    fn run(mut self) {
        self.shared.lead_until(|state| {
            state.has_job = !state.wakers.is_empty();
            (!state.has_job).then_some(())
        });
        self.is_over = true;
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The executor has dropped the job, or it panicked: whoever polls next begins another.
        let mut state = self.shared.state();
        state.has_job = false;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_values().for_each(Waker::wake);
    }
}
