//! The tasks that run on a worker.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;

/// The number of tasks that coordinators have sent to a worker and not ended yet.
#[derive(Clone, Debug)]
pub struct RunningTasks(Arc<watch::Sender<usize>>);

impl Default for RunningTasks {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl RunningTasks {
    /// Counts a task until the result is dropped.
    pub(super) fn start(&self) -> RunningTask {
        self.0.send_modify(|count| *count += 1);
        RunningTask(self.clone())
    }

    /// The number of tasks.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Completes when there are none.
    pub async fn drained(&self) {
        let mut count = self.0.subscribe();
        let _never_closed = count.wait_for(|count| *count == 0).await;
    }
}

/// A task that runs.
#[derive(Debug)]
pub(super) struct RunningTask(RunningTasks);

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// The answer to a coordinator, which ends with its task.
pub(super) struct TaskBody<B> {
    pub(super) body: B,
    pub(super) _task: RunningTask,
}

impl<B: Body + Unpin> Body for TaskBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
