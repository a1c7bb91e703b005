//! The tasks that run on a worker.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use tokio::sync::watch;
use uuid::Uuid;

/// The tasks that coordinators have sent to a worker and not ended yet.
#[derive(Clone, Debug)]
pub struct RunningTasks(Arc<State>);

#[derive(Debug)]
struct State {
    /// The number of executions that may have tasks at the same time.
    executions_max: usize,
    /// The executions that have tasks, with their numbers.
    executions: Mutex<BTreeMap<Uuid, usize>>,
    tasks: watch::Sender<usize>,
}

impl RunningTasks {
    /// No tasks, of at most this many executions at the same time.
    pub(super) fn new(executions_max: usize) -> Self {
        let tasks = watch::Sender::new(0);
        Self(Arc::new(State { executions_max, executions: Mutex::default(), tasks }))
    }

    /// Counts a task of an execution until the result is dropped. `None` if there are too many executions.
    pub(super) fn start(&self, execution: Uuid) -> Option<RunningTask> {
        let mut executions = self.executions();
        if executions.len() >= self.0.executions_max && !executions.contains_key(&execution) {
            return None;
        }
        *executions.entry(execution).or_default() += 1;
        self.0.tasks.send_modify(|count| *count += 1);
        Some(RunningTask { tasks: self.clone(), execution })
    }

    fn executions(&self) -> MutexGuard<'_, BTreeMap<Uuid, usize>> {
        self.0.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of tasks.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.0.tasks.borrow()
    }

    /// Each start and each end of a task.
    pub(super) fn changes(&self) -> watch::Receiver<usize> {
        self.0.tasks.subscribe()
    }

    /// Completes when there are none.
    pub async fn drained(&self) {
        let mut count = self.0.tasks.subscribe();
        let _never_closed = count.wait_for(|count| *count == 0).await;
    }
}

/// A task that runs.
#[derive(Debug)]
pub(super) struct RunningTask {
    tasks: RunningTasks,
    execution: Uuid,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let mut executions = self.tasks.executions();
        if let Some(tasks) = executions.get_mut(&self.execution) {
            *tasks -= 1;
            if *tasks == 0 {
                executions.remove(&self.execution);
            }
        }
        self.tasks.0.tasks.send_modify(|count| *count -= 1);
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
