//! The tasks that run on a worker.

use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use datafusion_distributed::TaskKey;
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
    running: Mutex<Running>,
    tasks: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Running {
    /// The executions of queries that have tasks, with the number of tasks of each.
    executions: BTreeMap<Uuid, usize>,
    /// The keys of those tasks that have their plan.
    planned: HashSet<TaskKey>,
}

impl RunningTasks {
    /// No tasks, of at most this many executions at the same time.
    pub(super) fn new(executions_max: usize) -> Self {
        let tasks = watch::Sender::new(0);
        Self(Arc::new(State { executions_max, running: Mutex::default(), tasks }))
    }

    /// Counts a task of an execution until the result is dropped. `None` if there are too many executions.
    pub(super) fn start(&self, execution: Uuid) -> Option<RunningTask> {
        let executions = &mut self.running().executions;
        if executions.len() >= self.0.executions_max && !executions.contains_key(&execution) {
            return None;
        }
        *executions.entry(execution).or_default() += 1;
        self.0.tasks.send_modify(|count| *count += 1);
        Some(RunningTask { tasks: self.clone(), execution, key: None })
    }

    /// The keys of the tasks that have their plan.
    pub(super) fn planned(&self) -> Vec<TaskKey> {
        self.running().planned.iter().copied().collect()
    }

    /// Whether a task has its plan and has not ended.
    pub(super) fn is_planned(&self, task: &TaskKey) -> bool {
        self.running().planned.contains(task)
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
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
    key: Option<TaskKey>,
}

impl RunningTask {
    /// Records that the worker has the plan of this task.
    pub(super) fn with_plan(mut self, key: Option<TaskKey>) -> Self {
        self.key = key;
        self.tasks.running().planned.extend(key);
        self
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let mut running = self.tasks.running();
        if let Some(key) = self.key {
            running.planned.remove(&key);
        }
        if let Some(tasks) = running.executions.get_mut(&self.execution) {
            *tasks -= 1;
            if *tasks == 0 {
                running.executions.remove(&self.execution);
            }
        }
        drop(running);
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
