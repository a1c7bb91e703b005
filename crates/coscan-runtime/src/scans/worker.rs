//! A worker of a scan, which takes chunk after chunk, and makes record batches of each.
//!
//! It takes each column of a chunk decoded whole, once for all scans that need it, or decodes it for itself batch by
//! batch, which is cheaper when no other scan needs it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use coscan_core::{ChunkIndex, MemoryStage, WorkerIndex};

use crate::chunks::batch::record_batch;
use crate::chunks::columns::{Opening, PartColumns, open};
use crate::cpu::scheduler::Runnable;
use crate::cpu::yield_policy::{YieldDecision, YieldPolicy};
use crate::driver::{Message, RequestId};
use crate::error::ScanError;
use crate::memory::Reservation;
use crate::observe::metrics::add_time;
use crate::scans::handle::ScanHandle;
use crate::sync::destructor::InDestructor;

/// Rows of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkBatch {
    /// The chunk of core.
    pub(crate) chunk: ChunkIndex,
    /// The position of their table among those of the scan.
    pub(crate) table: usize,
    pub(crate) batch: RecordBatch,
    /// Whether the chunk has no more rows.
    pub(crate) is_last: bool,
}

/// A batch, or `None` at the end.
pub(crate) type NextBatch = Result<Option<ChunkBatch>, ScanError>;

/// One of the workers of a scan.
pub(crate) struct Worker {
    current: Option<ChunkBatches>,
    scan: Arc<ScanHandle>,
    index: WorkerIndex,
    yield_policy: YieldPolicy,
    /// Its latest request for a chunk.
    request: Option<RequestId>,
    /// Memory that it has waited for, to open the next chunk that it is handed.
    memory: Option<Reservation>,
    /// Whether it was told that there are no more chunks, or has failed.
    has_ended: bool,
}

impl Drop for Worker {
    /// Withdraws the worker. Its scan continues without it.
    fn drop(&mut self) {
        let _destructor = InDestructor::enter();
        if let Some(request) = self.request.filter(|_| !self.has_ended) {
            self.scan.driver().post(Message::WorkerGone(request));
        }
    }
}

/// The progress of a worker without waiting.
pub(crate) enum Step {
    Batch(Result<ChunkBatch, ScanError>),
    /// The next batch needs this much memory, which queries hold now.
    NeedsMemory {
        bytes: u64,
    },
    NeedsChunk,
}

impl Worker {
    pub(crate) fn new(scan: Arc<ScanHandle>, index: WorkerIndex) -> Self {
        Self {
            current: None,
            scan,
            index,
            yield_policy: YieldPolicy::new(),
            request: None,
            memory: None,
            has_ended: false,
        }
    }

    /// Notes the end of the rows, or that of the scan for all its workers.
    pub(crate) fn note_end(&mut self, next: &NextBatch) {
        match next {
            Ok(Some(_)) => {}
            Ok(None) => self.has_ended = true,
            // Rows are missing, so no other worker may end as if all had come.
            Err(error) => {
                self.has_ended = true;
                self.scan.fail(error);
            }
        }
    }

    pub(crate) fn decide(&mut self) -> YieldDecision {
        self.yield_policy.next(self.scan.driver().cpu_scheduler(), self.scan.activity())
    }

    pub(crate) async fn apply(&mut self, decision: YieldDecision) {
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

    /// The next batch of the current chunk, if no wait is needed for it.
    pub(crate) fn next_at_once(&mut self) -> Step {
        let Some(current) = &mut self.current else { return Step::NeedsChunk };
        let step = current.next(&self.scan);
        if current.parts.is_empty() || matches!(step, Step::Batch(Err(_))) {
            self.current = None;
        }
        step
    }

    pub(crate) async fn next(&mut self) -> NextBatch {
        loop {
            match self.next_at_once() {
                Step::Batch(batch) => return batch.map(Some),
                Step::NeedsMemory { bytes } => {
                    let reservation =
                        self.scan.reserve(self.index, bytes, MemoryStage::Working).await?;
                    if let Some(current) = &mut self.current {
                        current.provide(reservation);
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

    /// Waits for the next chunk, and for memory to open it. Returns false if there is none.
    async fn open_next_chunk(&mut self) -> Result<bool, ScanError> {
        let driver = Arc::clone(self.scan.driver());
        let mut may_wait = true;
        loop {
            let asked = Instant::now();
            let request = driver.request_chunk(self.scan.id(), self.index);
            self.request = Some(request.id());
            let answer = request.await;
            add_time(&self.scan.counters().wait_ns, asked.elapsed());
            self.yield_policy.resume(false);
            let Some(lease) = answer? else { return Ok(false) };
            // Longer scans yield from now on.
            let activity = Arc::clone(self.scan.activity());
            let runnable = driver.cpu_scheduler().add(activity, self.index);
            let chunk = lease.chunk();
            match open(&self.scan, lease, self.memory.take(), may_wait).await? {
                Opening::Opened(parts) => {
                    self.current =
                        Some(ChunkBatches { chunk, parts, has_given: false, _runnable: runnable });
                    return Ok(true);
                }
                Opening::NeedsMemory { bytes } => {
                    drop(runnable);
                    self.memory =
                        Some(self.scan.reserve(self.index, bytes, MemoryStage::Opening).await?);
                }
                Opening::Revoked { memory } => {
                    self.memory = memory;
                    may_wait = false; // Or it could wait and lose its chunk again and again.
                }
            }
        }
    }
}

/// The remaining batches of an open chunk.
struct ChunkBatches {
    chunk: ChunkIndex,
    /// The parts with rows left.
    parts: VecDeque<PartColumns>,
    /// Whether a batch was given.
    has_given: bool,
    _runnable: Runnable,
}

impl ChunkBatches {
    /// The next batch. A part is dropped with its last batch. A chunk gives at least one, which is empty if all its rows
    /// are deleted.
    fn next(&mut self, scan: &ScanHandle) -> Step {
        loop {
            let Some(part) = self.parts.front_mut() else { return Step::NeedsChunk };
            let table = part.table();
            let (arrays, rows) = match part.next(scan) {
                Ok(Some(next)) => next,
                Ok(None) => return Step::NeedsMemory { bytes: part.batch_bytes() },
                Err(error) => return Step::Batch(Err(error)),
            };
            if part.is_empty() {
                self.parts.pop_front();
            }
            let schema = &scan.parts().columns_of(table).schema;
            let batch = match record_batch(schema, arrays, rows) {
                Ok(batch) => batch,
                Err(error) => return Step::Batch(Err(error)),
            };
            let is_last = self.parts.is_empty();
            if batch.num_rows() > 0 || is_last && !self.has_given {
                self.has_given = true;
                return Step::Batch(Ok(ChunkBatch { chunk: self.chunk, table, batch, is_last }));
            }
        }
    }

    /// Provides the memory for the next batch.
    fn provide(&mut self, memory: Reservation) {
        if let Some(part) = self.parts.front_mut() {
            part.provide(memory);
        }
    }
}
