//! The rows that a partition reads, chunk by chunk.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coscan_runtime::ScanStream;
use coscan_runtime::core::ChunkIndex;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::error::Result;
use futures::StreamExt;

use crate::error::from_scan;
use crate::execution::executions::Execution;
use crate::shared_results::{ChunkState, Subscription};

/// Reads the chunks of one execution of a partition. Dropping it leaves the rest unread.
pub(crate) struct ChunkReader {
    execution: Execution,
    /// The worker that is reading, after the first poll.
    worker: Option<ScanStream>,
    /// Whether the chunk of the last rows has more.
    is_in_chunk: bool,
}

/// The next part of a partition.
pub(crate) enum Read {
    Rows {
        chunk: ChunkIndex,
        batch: RecordBatch,
        /// Whether these are known to be the last rows of the chunk.
        is_last: bool,
    },
    /// The state of a whole chunk, from another query.
    State(Arc<ChunkState>),
}

impl ChunkReader {
    pub(crate) fn new(execution: Execution) -> Self {
        Self { execution, worker: None, is_in_chunk: false }
    }

    /// The next rows with their chunk, or `None` if there are no more. The batches of a chunk are consecutive, in the
    /// order of its rows.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(ChunkIndex, RecordBatch)>>> {
        let read = ready!(self.poll_next(context));
        Poll::Ready(read.map(|read| match read? {
            Read::Rows { chunk, batch, .. } => Ok((chunk, batch)),
            Read::State(_) => internal_err!("a plan that needs rows takes no results"),
        }))
    }

    /// The next rows, or between two chunks the state of another one if its plan takes results of others.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Read>>> {
        loop {
            if let Some(state) = self.take_state(context) {
                return Poll::Ready(Some(Ok(state)));
            }
            if let Some(worker) = &mut self.worker {
                self.execution.prune();
                match ready!(worker.poll_next_unpin(context)) {
                    Some(read) => {
                        self.execution.does_not_wait();
                        let is_last = worker.chunk_has_ended();
                        self.is_in_chunk = !is_last;
                        let chunk = worker.chunk();
                        let rows = read.map_err(from_scan).map(|batch| Read::Rows {
                            chunk: chunk.expect("a batch is part of a chunk"),
                            batch,
                            is_last,
                        });
                        return Poll::Ready(Some(rows));
                    }
                    None => (self.worker, self.is_in_chunk) = (None, false),
                }
            }
            match self.execution.next() {
                // There may be states although nothing is read.
                Ok(None) => return Poll::Ready(self.take_state(context).map(Ok)),
                Ok(worker) => self.worker = worker,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn take_state(&self, context: &Context<'_>) -> Option<Read> {
        if self.is_in_chunk {
            return None;
        }
        self.execution.take_state(context.waker()).map(Read::State)
    }

    /// The query among those that share results with it, once it reads.
    pub(crate) fn subscription(&self) -> Option<&Subscription> {
        self.execution.subscription()
    }
}
