//! The rows that a partition reads, chunk by chunk.

use std::task::{Context, Poll, ready};

use coscan_runtime::ScanStream;
use coscan_runtime::core::ChunkIndex;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use futures::StreamExt;

use crate::error::from_scan;
use crate::execution::executions::Execution;

/// Reads the chunks of one execution of a partition. Dropping it leaves the rest unread.
pub(crate) struct ChunkReader {
    execution: Execution,
    /// The worker that is reading, after the first poll.
    worker: Option<ScanStream>,
}

impl ChunkReader {
    pub(crate) fn new(execution: Execution) -> Self {
        Self { execution, worker: None }
    }

    /// The next rows with their chunk, or `None` if there are no more. The batches of a chunk are consecutive, in the
    /// order of its rows.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<(ChunkIndex, RecordBatch)>>> {
        loop {
            if let Some(worker) = &mut self.worker {
                self.execution.prune();
                match ready!(worker.poll_next_unpin(context)) {
                    Some(read) => {
                        let chunk = worker.chunk();
                        return Poll::Ready(Some(
                            read.map_err(from_scan)
                                .map(|batch| (chunk.expect("a batch is part of a chunk"), batch)),
                        ));
                    }
                    None => self.worker = None,
                }
            }
            match self.execution.next() {
                Ok(None) => return Poll::Ready(None),
                Ok(worker) => self.worker = worker,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}
