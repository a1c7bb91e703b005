//! The stream of a worker's batches.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use coscan_core::{Index, WorkerIndex};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};

use crate::cpu::activity::WorkerActivity;
use crate::cpu::scheduler::CpuScheduler;
use crate::cpu::yield_policy::YieldDecision;
use crate::error::ScanError;
use crate::scans::handle::ScanHandle;
use crate::scans::worker::{ChunkBatch, NextBatch, Step, Worker};

/// The batches of a worker of a scan, in the order in which the scheduler hands out chunks. Drop it to stop.
pub(crate) struct WorkerStream {
    polled: Polled,
    state: State,
}

enum State {
    /// The state between two polls.
    Resting(Box<Worker>),
    /// The worker is making a batch.
    Working(BoxFuture<'static, (Box<Worker>, NextBatch)>),
    Ended,
}

impl WorkerStream {
    /// The stream of a worker of a scan.
    ///
    /// # Panics
    /// If there is no such worker.
    pub(crate) fn new(scan: &Arc<ScanHandle>, worker: usize) -> Self {
        assert!(worker < scan.workers(), "worker {worker} of {}", scan.workers());
        let index = WorkerIndex::from_usize(worker);
        let (activity, cpu_scheduler) =
            (Arc::clone(scan.activity()), scan.driver().cpu_scheduler());
        let polled = Polled { activity, worker: index, cpu_scheduler: Arc::clone(cpu_scheduler) };
        let worker = Worker::new(Arc::clone(scan), index);
        Self { polled, state: State::Resting(Box::new(worker)) }
    }
}

impl Stream for WorkerStream {
    type Item = Result<ChunkBatch, ScanError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.polled.begin();
        let polled = self.go_on(context);
        self.polled.end();
        polled
    }
}

impl WorkerStream {
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<ChunkBatch, ScanError>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Poll::Ready(None),
                State::Resting(mut worker) => {
                    let decision = worker.decide();
                    if decision == YieldDecision::Continue
                        && let Step::Batch(next) = worker.next_at_once()
                    {
                        return Poll::Ready(self.settle(worker, next.map(Some)));
                    }
                    let work = async move {
                        worker.apply(decision).await;
                        let next = worker.next().await;
                        (worker, next)
                    };
                    self.state = State::Working(work.boxed());
                }
                State::Working(mut work) => match work.poll_unpin(context) {
                    Poll::Pending => {
                        self.state = State::Working(work);
                        return Poll::Pending;
                    }
                    Poll::Ready((worker, next)) => return Poll::Ready(self.settle(worker, next)),
                },
            }
        }
    }

    fn settle(
        &mut self,
        mut worker: Box<Worker>,
        next: NextBatch,
    ) -> Option<Result<ChunkBatch, ScanError>> {
        worker.note_end(&next);
        if let Ok(Some(_)) = next {
            self.state = State::Resting(worker);
        }
        next.transpose()
    }
}

/// A note of the polls of a worker. It outlives the worker.
struct Polled {
    activity: Arc<WorkerActivity>,
    worker: WorkerIndex,
    cpu_scheduler: Arc<CpuScheduler>,
}

impl Polled {
    fn begin(&self) {
        self.activity.poll_begins(self.worker);
    }

    fn end(&self) {
        self.activity.poll_ends(self.worker, self.cpu_scheduler.now());
    }
}
