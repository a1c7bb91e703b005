//! The execution of a plan over a table in its order: tasks that each work on a chunk.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use coscan_runtime::core::ChunkIndex;
use coscan_runtime::{BufferManager, Scan, ScanMetrics, ScanRequest, ScanStream, SharedTable};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, RecordOutput};
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use futures::{StreamExt, stream};

use super::chunk_plan::ChunkPlan;
use super::reorder_buffer::ReorderBuffer;
use crate::error::from_scan;
use crate::execution::exec::SharedScanExec;
use crate::execution::metrics::ScanCounts;

/// Rows ahead take at most this part of the memory budget.
const AHEAD_DIVISOR: u64 = 16;

/// The parts of an execution that has not started.
pub(super) struct Execution {
    manager: BufferManager,
    table: SharedTable,
    request: ScanRequest,
    /// The chunks in ascending order.
    chunks: Vec<ChunkIndex>,
    /// The number of rows of each chunk.
    rows: Vec<u64>,
    /// The schema of the scan's batches.
    schema: SchemaRef,
    filling: ChunkPlan,
    context: Arc<TaskContext>,
    counts: ScanCounts,
    baseline: BaselineMetrics,
    given_back: Count,
}

impl Execution {
    /// Prepares the execution of a scan in order by `tasks` tasks.
    pub(super) fn new(
        scan: &SharedScanExec,
        tasks: usize,
        filling: ChunkPlan,
        given_back: Count,
        context: Arc<TaskContext>,
    ) -> Self {
        let chunks = scan.needed_chunks().to_vec();
        Self {
            manager: scan.manager().clone(),
            table: scan.table().clone(),
            request: scan.request(tasks, &context),
            rows: chunks.iter().map(|&chunk| scan.rows_of(chunk)).collect(),
            chunks,
            schema: scan.schema(),
            filling,
            context,
            counts: scan.counts(),
            baseline: scan.baseline(0),
            given_back,
        }
    }

    /// Starts the scan, and a task for each of its workers.
    pub(super) fn start(self) -> Result<SendableRecordBatchStream> {
        let Self { manager, table, request, chunks, .. } = &self;
        let scan = manager.start_scan_of(table, request.clone(), chunks).map_err(from_scan)?;
        self.counts.chunks_needed.add(chunks.len());
        let memory = MemoryConsumer::new("InOrderExec").register(self.context.memory_pool());
        let ahead_bytes_max = manager.operator_memory().budget_bytes() / AHEAD_DIVISOR;
        let ahead_bytes_max = usize::try_from(ahead_bytes_max).unwrap_or(usize::MAX);
        let turns = ReorderBuffer::new(chunks.len(), memory, ahead_bytes_max);
        let (schema, tasks) = (self.filling.plan().schema(), request.workers);
        let running = Arc::new(Running { scan, turns, execution: self });
        let mut output = RecordBatchReceiverStreamBuilder::new(schema, 1);
        for worker in 0..tasks {
            output.spawn(Arc::clone(&running).work(worker));
        }
        let taken = output.tx();
        output.spawn(async move {
            while let Some(batch) = running.turns.next().await {
                if taken.send(Ok(batch)).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(output.build())
    }
}

/// The state of an execution, which all its tasks share.
struct Running {
    scan: Arc<Scan>,
    turns: ReorderBuffer,
    execution: Execution,
}

impl Running {
    /// Runs a task, which works on one chunk after another.
    async fn work(self: Arc<Self>, worker: usize) -> Result<()> {
        let mut stream = self.scan.worker(worker);
        loop {
            self.turns.ask(|| self.execution.manager.is_memory_short()).await;
            let Some(first) = stream.next().await.transpose().map_err(from_scan)? else {
                self.turns.handed(None);
                return Ok(());
            };
            let Some(index) = stream.chunk() else { return internal_err!("rows of no chunk") };
            let position = self.execution.chunks.binary_search(&index);
            let chunk = position.map_err(|_| internal_datafusion_err!("a chunk not needed"))?;
            self.turns.handed(Some(chunk));
            let rows = Rows::new(Arc::clone(&self), stream, first, self.execution.rows[chunk]);
            let rows = Arc::new(Mutex::new(rows));
            let is_taken = tokio::select! {
                biased;
                finished = self.work_on(chunk, Arc::clone(&rows)) => finished.map(|()| true)?,
                () = self.memory_shortage_ahead(chunk) => false,
            };
            stream = match (is_taken, Arc::into_inner(rows)) {
                (true, Some(rows)) => {
                    rows.into_inner().unwrap_or_else(PoisonError::into_inner).stream
                }
                (true, None) => {
                    return internal_err!("a chunk is still read, but all rows have come");
                }
                (false, rows) => {
                    drop(rows);
                    self.execution.given_back.add(1);
                    self.scan.extend(&[index]).map_err(|error| from_scan(error.error))?;
                    self.scan.worker(worker)
                }
            };
        }
    }

    /// Executes the plan for a chunk, and waits until its rows were taken.
    async fn work_on(&self, chunk: usize, rows: Arc<Mutex<Rows>>) -> Result<()> {
        let rows = stream::poll_fn(move |context| {
            rows.lock().unwrap_or_else(PoisonError::into_inner).poll_next(context)
        });
        let input = RecordBatchStreamAdapter::new(Arc::clone(&self.execution.schema), rows);
        let mut output =
            self.execution.filling.execute(vec![Box::pin(input)], &self.execution.context)?;
        while let Some(batch) = output.next().await {
            self.turns.put(chunk, batch?).await;
        }
        drop(output);
        self.turns.complete(chunk).await;
        Ok(())
    }

    /// Waits until memory is short while the chunk is ahead, so that its rows are dropped. Waits forever if the chunk
    /// gets its turn before.
    async fn memory_shortage_ahead(&self, chunk: usize) {
        self.execution.manager.memory_shortage().await;
        if !self.turns.give_back(chunk) {
            pending().await
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.execution.counts.add(&ScanMetrics::default(), &self.scan.metrics());
    }
}

/// The rows of a chunk.
struct Rows {
    running: Arc<Running>,
    stream: ScanStream,
    /// The rows that were read but not yet given to the plan.
    pending: Option<RecordBatch>,
    /// The number of rows left to read.
    left: u64,
}

impl Rows {
    fn new(running: Arc<Running>, stream: ScanStream, first: RecordBatch, rows: u64) -> Self {
        let left = rows.saturating_sub(first.num_rows() as u64);
        Self { running, stream, pending: Some(first), left }
    }

    /// The next rows, at most the session's batch size, or `None` at the end of the chunk.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let execution = &self.running.execution;
        let rows = match self.pending.take() {
            Some(rows) => rows,
            None if self.left == 0 => return Poll::Ready(None),
            None => match ready!(self.stream.poll_next_unpin(context)) {
                Some(Ok(rows)) => {
                    self.left = self.left.saturating_sub(rows.num_rows() as u64);
                    rows
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(from_scan(error)))),
                None => {
                    return Poll::Ready(Some(internal_err!("a chunk ends before its last row")));
                }
            },
        };
        let rows_max = execution.context.session_config().batch_size().max(1);
        let given = rows.slice(0, rows.num_rows().min(rows_max));
        if given.num_rows() < rows.num_rows() {
            self.pending = Some(rows.slice(given.num_rows(), rows.num_rows() - given.num_rows()));
        }
        Poll::Ready(Some(Ok(given.record_output(&execution.baseline))))
    }
}
