//! The rows of a worker of a joint scan as inputs of a [`ChunkPlan`](super::chunk_plan::ChunkPlan).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use coscan_runtime::{JointBatch, JointStream};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};

use crate::error::from_scan;

/// An input of the plan: columns of a table of the joint scan. Several inputs may read the same table.
#[derive(Clone, Debug)]
pub(super) struct JointInput {
    /// The index of the table.
    pub(super) table: usize,
    /// The indexes of the columns in the scan's batches of that table.
    pub(super) columns: Vec<usize>,
    pub(super) schema: SchemaRef,
}

/// The rows of a worker, joint chunk by joint chunk.
#[derive(Clone)]
pub(super) struct JointRows {
    shared: Arc<Mutex<Reader>>,
    inputs: Arc<[JointInput]>,
}

struct Reader {
    stream: JointStream,
    inputs: Arc<[JointInput]>,
    /// The joint chunk that is being read; `None` between chunks.
    chunk: Option<usize>,
    /// The table of the last rows. All rows of the tables before it have arrived.
    table: usize,
    /// The first rows of the next joint chunk.
    ahead: Option<JointBatch>,
    /// For each input, the rows of the joint chunk that arrived before they were requested.
    waiting: Vec<VecDeque<RecordBatch>>,
}

impl JointRows {
    pub(super) fn new(stream: JointStream, inputs: Arc<[JointInput]>) -> Self {
        let waiting = vec![VecDeque::new(); inputs.len()];
        let of_reader = Arc::clone(&inputs);
        let reader =
            Reader { stream, inputs: of_reader, chunk: None, table: 0, ahead: None, waiting };
        Self { shared: Arc::new(Mutex::new(reader)), inputs }
    }

    /// Moves to the next joint chunk that has rows, past unread rows of the current one. Returns false if there is
    /// none.
    pub(super) async fn next_chunk(&self) -> Result<bool> {
        poll_fn(|context| self.lock().poll_next_chunk(context)).await
    }

    /// The rows of the current joint chunk, one stream for each input.
    pub(super) fn inputs(&self) -> Vec<SendableRecordBatchStream> {
        let input = |input: usize| {
            let (shared, schema) =
                (Arc::clone(&self.shared), Arc::clone(&self.inputs[input].schema));
            let rows = stream::poll_fn(move |context| lock(&shared).poll_input(context, input));
            Box::pin(RecordBatchStreamAdapter::new(schema, rows)) as SendableRecordBatchStream
        };
        (0..self.inputs.len()).map(input).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Reader> {
        lock(&self.shared)
    }
}

fn lock(reader: &Mutex<Reader>) -> MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    fn poll_next_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<bool>> {
        while self.chunk.is_some() {
            ready!(self.poll_read(context))?;
            self.waiting.iter_mut().for_each(VecDeque::clear);
        }
        self.waiting.iter_mut().for_each(VecDeque::clear);
        if self.ahead.is_none() {
            self.ahead =
                ready!(self.stream.poll_next_unpin(context)).transpose().map_err(from_scan)?;
        }
        let Some(first) = self.ahead.take() else { return Poll::Ready(Ok(false)) };
        self.chunk = Some(first.chunk);
        Poll::Ready(self.push(first).map(|()| true))
    }

    /// Reads the next rows of the joint chunk, if it has any.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let read = ready!(self.stream.poll_next_unpin(context)).transpose().map_err(from_scan);
        Poll::Ready(match read.inspect_err(|_| self.chunk = None)? {
            Some(batch) if self.chunk == Some(batch.chunk) => self.push(batch),
            ahead => {
                (self.ahead, self.chunk) = (ahead, None);
                Ok(())
            }
        })
    }

    /// Adds rows to the inputs of their table.
    fn push(&mut self, JointBatch { table, batch, .. }: JointBatch) -> Result<()> {
        self.table = table;
        for (input, waiting) in self.inputs.iter().zip(&mut self.waiting) {
            if input.table == table {
                waiting.push_back(batch.project(&input.columns)?);
            }
        }
        Ok(())
    }

    fn poll_input(
        &mut self,
        context: &mut Context<'_>,
        input: usize,
    ) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(batch) = self.waiting[input].pop_front() {
                return Poll::Ready(Some(Ok(batch)));
            }
            if self.chunk.is_none() || self.table > self.inputs[input].table {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(self.poll_read(context)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}
