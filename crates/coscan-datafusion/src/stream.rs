//! The record batches of one partition.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coscan_runtime::ScanStream;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use futures::{Stream, StreamExt};

use crate::error::from_scan;
use crate::run::Execution;

/// An execution of a partition as a stream. Dropping it gives up what it has not given.
pub(crate) struct SharedScanStream {
    schema: SchemaRef,
    /// Until the stream has ended.
    execution: Option<Execution>,
    /// Once it has been polled.
    worker: Option<ScanStream>,
    /// Rows that may still be given out, if not all.
    fetch_left: Option<usize>,
    baseline: BaselineMetrics,
}

impl SharedScanStream {
    pub(crate) fn new(
        execution: Execution,
        schema: SchemaRef,
        fetch: Option<usize>,
        baseline: BaselineMetrics,
    ) -> Self {
        Self { schema, execution: Some(execution), worker: None, fetch_left: fetch, baseline }
    }

    /// Gives everything back that it held.
    fn end(&mut self) {
        self.worker = None;
        if self.execution.take().is_some() {
            self.baseline.done();
        }
    }

    fn is_fetched(&self) -> bool {
        self.fetch_left == Some(0)
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if self.is_fetched() {
            return Poll::Ready(None);
        }
        loop {
            let Some(execution) = &mut self.execution else { return Poll::Ready(None) };
            if let Some(worker) = &mut self.worker {
                execution.narrow();
                match ready!(worker.poll_next_unpin(context)) {
                    Some(Ok(batch)) => return Poll::Ready(Some(Ok(self.take_of(batch)))),
                    Some(Err(error)) => return Poll::Ready(Some(Err(from_scan(error)))),
                    None => self.worker = None,
                }
            }
            match execution.next() {
                Ok(None) => return Poll::Ready(None),
                Ok(worker) => self.worker = worker,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// What is still wanted of a batch.
    fn take_of(&mut self, batch: RecordBatch) -> RecordBatch {
        let Some(left) = &mut self.fetch_left else { return batch };
        let rows = batch.num_rows().min(*left);
        *left -= rows;
        if rows == batch.num_rows() { batch } else { batch.slice(0, rows) }
    }
}

impl Stream for SharedScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let timer = self.baseline.elapsed_compute().clone();
        let timer = timer.timer();
        let polled = self.poll_batch(context);
        drop(timer);
        match &polled {
            Poll::Ready(Some(Ok(batch))) => {
                batch.record_output(&self.baseline);
                // Its part is freed at once, not when somebody asks for one more batch.
                if self.is_fetched() {
                    self.end();
                }
            }
            Poll::Ready(None | Some(Err(_))) => self.end(),
            Poll::Pending => {}
        }
        polled
    }
}

impl RecordBatchStream for SharedScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for SharedScanStream {
    fn drop(&mut self) {
        self.end();
    }
}
