//! The record batches that a worker of a scan takes.
//!
//! The worker takes each column of a chunk decoded whole, once for all scans that want it, or decodes it for itself
//! batch by batch, which is cheaper when no other scan wants it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coscan_core::{ChunkIndex, Index, WorkerIndex};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};

use crate::batch::record_batch;
use crate::columns::{ChunkColumns, Opening};
use crate::cpu_scheduler::{CpuScheduler, Runnable, YieldDecision, YieldPolicy};
use crate::error::ScanError;
use crate::memory::{Reservation, Stage};
use crate::metrics::add_time;
use crate::scan::Scan;
use crate::worker_activity::WorkerActivity;

/// Record batches of one worker of a scan, in the order in which the scheduler hands out chunks.
///
/// Drop it to stop. The other workers of the scan get all chunks but the one that it has already given rows of, whose
/// remaining rows are lost. After an error it ends, and so do the other workers of the scan.
pub struct ScanStream {
    schema: SchemaRef,
    polled: Polled,
    state: State,
    chunk: Option<ChunkIndex>,
}

/// A batch, or `None` at the end.
type NextBatch = Result<Option<RecordBatch>, ScanError>;

enum State {
    /// Between two polls.
    Resting(Box<Worker>),
    /// The worker is making a batch.
    Working(BoxFuture<'static, (Box<Worker>, NextBatch)>),
    Ended,
}

impl Scan {
    /// The record batches that one of its workers takes. Call it once for each worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn worker(self: &Arc<Self>, worker: usize) -> ScanStream {
        assert!(worker < self.workers(), "worker {worker} of {}", self.workers());
        ScanStream::new(Arc::clone(self), WorkerIndex::from_usize(worker))
    }
}

impl ScanStream {
    fn new(scan: Arc<Scan>, index: WorkerIndex) -> Self {
        let schema = Arc::clone(scan.schema());
        let (activity, cpu_scheduler) =
            (Arc::clone(scan.activity()), scan.driver().cpu_scheduler());
        let polled = Polled { activity, worker: index, cpu_scheduler: Arc::clone(cpu_scheduler) };
        let worker = Worker {
            current: None,
            chunk: None,
            scan,
            index,
            yield_policy: YieldPolicy::new(),
            memory: None,
            has_ended: false,
        };
        Self { schema, polled, state: State::Resting(Box::new(worker)), chunk: None }
    }

    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The chunk of the table that the last batch is part of. The batches of a chunk come one after another, in the
    /// order of its rows.
    #[must_use]
    pub fn chunk(&self) -> Option<ChunkIndex> {
        self.chunk
    }
}

impl std::fmt::Debug for ScanStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScanStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch, ScanError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.polled.begin();
        let polled = self.go_on(context);
        self.polled.end();
        polled
    }
}

impl ScanStream {
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, ScanError>>> {
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
                        worker.obey(decision).await;
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
    ) -> Option<Result<RecordBatch, ScanError>> {
        match &next {
            Ok(Some(_)) => {
                self.chunk = worker.chunk;
                self.state = State::Resting(worker);
            }
            Ok(None) => worker.has_ended = true,
            // Rows are missing: no other worker may end as if all had come.
            Err(error) => {
                worker.has_ended = true;
                worker.scan.fail(error);
            }
        }
        next.transpose()
    }
}

/// Notes when a worker is polled. It outlives the worker.
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

/// One of the workers of a scan.
struct Worker {
    current: Option<ChunkBatches>,
    /// The chunk that it was handed last.
    chunk: Option<ChunkIndex>,
    scan: Arc<Scan>,
    index: WorkerIndex,
    yield_policy: YieldPolicy,
    /// Memory that it has waited for, to open the next chunk that it is handed.
    memory: Option<Reservation>,
    /// It was told that there are no more chunks, or has failed.
    has_ended: bool,
}

impl Drop for Worker {
    /// Its scan goes on without it.
    fn drop(&mut self) {
        // The last worker ends the scan.
        if !self.has_ended && Arc::strong_count(&self.scan) > 1 {
            self.scan.driver().withdraw(self.scan.id(), self.index);
        }
    }
}

/// The progress of a worker without waiting.
enum Step {
    Batch(Result<RecordBatch, ScanError>),
    /// The next batch needs this much memory, which queries hold now.
    NeedsMemory {
        bytes: u64,
    },
    NeedsChunk,
}

impl Worker {
    fn decide(&mut self) -> YieldDecision {
        self.yield_policy.next(self.scan.driver().cpu_scheduler(), self.scan.priority())
    }

    async fn obey(&mut self, decision: YieldDecision) {
        match decision {
            YieldDecision::Continue => return,
            YieldDecision::Yield => tokio::task::yield_now().await,
            YieldDecision::GiveWay(pause) => {
                let (driver, activity) = (self.scan.driver(), self.scan.activity());
                activity.pause_for(self.index, pause);
                driver.cpu_scheduler().give_way(activity.priority(), pause, driver.runtime()).await;
                activity.pause_for(self.index, Duration::ZERO);
            }
        }
        self.yield_policy.resume(matches!(decision, YieldDecision::GiveWay(_)));
    }

    /// The next batch of the current chunk, if it takes no waiting.
    fn next_at_once(&mut self) -> Step {
        let Some(current) = &mut self.current else { return Step::NeedsChunk };
        let step = current.next(&self.scan);
        if current.rows_left == 0 || matches!(step, Step::NeedsChunk | Step::Batch(Err(_))) {
            self.current = None;
        }
        step
    }

    async fn next(&mut self) -> NextBatch {
        loop {
            match self.next_at_once() {
                Step::Batch(batch) => return batch.map(Some),
                Step::NeedsMemory { bytes } => {
                    let reservation = self.scan.reserve(self.index, bytes, Stage::Working).await?;
                    if let Some(current) = &mut self.current {
                        current.columns.provide(reservation);
                    }
                }
                Step::NeedsChunk => {
                    if !self.open_next_chunk().await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits for the next chunk, and for memory to open it; false if there is none.
    async fn open_next_chunk(&mut self) -> Result<bool, ScanError> {
        let driver = Arc::clone(self.scan.driver());
        loop {
            let asked = Instant::now();
            let answer = driver.request_chunk(self.scan.id(), self.index).await;
            add_time(&self.scan.counters().wait_ns, asked.elapsed());
            self.yield_policy.resume(false);
            let Some(mut lease) = answer.unwrap_or(Err(ScanError::Cancelled))? else {
                return Ok(false);
            };
            let runnable = lease.runnable.take();
            self.chunk = Some(lease.chunk);
            let rows_left = self.scan.rows_needed(lease.chunk);
            match ChunkColumns::open(&self.scan, lease, self.memory.take()).await? {
                Opening::Opened(columns) => {
                    self.current = Some(ChunkBatches { columns, rows_left, _runnable: runnable });
                    return Ok(true);
                }
                Opening::NeedsMemory { bytes } => {
                    drop(runnable);
                    self.memory = Some(self.scan.reserve(self.index, bytes, Stage::Opening).await?);
                }
            }
        }
    }
}

/// The remaining batches of an open chunk.
struct ChunkBatches {
    columns: ChunkColumns,
    rows_left: u64,
    _runnable: Option<Runnable>,
}

impl ChunkBatches {
    fn next(&mut self, scan: &Scan) -> Step {
        if self.rows_left == 0 {
            return Step::NeedsChunk;
        }
        let rows_max = self.rows_left.min(scan.driver().options().batch_rows as u64);
        let arrays = match self.columns.next(scan) {
            Ok(Some(arrays)) => arrays,
            Ok(None) => return Step::NeedsMemory { bytes: self.columns.batch_bytes() },
            Err(error) => return Step::Batch(Err(error)),
        };
        let rows = arrays.first().map_or(rows_max, |array| array.len() as u64);
        self.rows_left =
            self.rows_left.checked_sub(rows).expect("a decoder gives only the rows asked for");
        Step::Batch(record_batch(scan.schema(), arrays, rows))
    }
}
