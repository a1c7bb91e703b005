//! The record batches of one partition.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coscan_runtime::{ScanError, ScanStream};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, RecordOutput};
use futures::{Stream, StreamExt};

use crate::error::from_scan;
use crate::run::Run;

/// A worker of a run's scan as a stream. Dropping it gives up its part.
pub(crate) struct SharedScanStream {
    schema: SchemaRef,
    partition: usize,
    /// Until the stream has ended.
    run: Option<Arc<Run>>,
    /// Once it has been polled.
    worker: Option<ScanStream>,
    baseline: BaselineMetrics,
}

impl SharedScanStream {
    pub(crate) fn new(
        run: Arc<Run>,
        partition: usize,
        schema: SchemaRef,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        let baseline = BaselineMetrics::new(metrics, partition);
        Self { schema, partition, run: Some(run), worker: None, baseline }
    }

    /// Leaves the run, with everything that it held.
    fn end(&mut self) {
        self.worker = None;
        if let Some(run) = self.run.take() {
            run.leave();
            self.baseline.done();
        }
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let Some(run) = &self.run else { return Poll::Ready(None) };
        if self.worker.is_none() {
            match run.open(self.partition) {
                Ok(Some(worker)) => self.worker = Some(worker),
                Ok(None) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let Some(worker) = &mut self.worker else { return Poll::Ready(None) };
        run.narrow();
        let next = match ready!(worker.poll_next_unpin(context)) {
            None => return Poll::Ready(None),
            Some(Err(ScanError::Cancelled)) if run.is_fetched() => return Poll::Ready(None),
            Some(Err(error)) => Err(from_scan(error)),
            Some(Ok(batch)) => match run.take_rows(batch.num_rows()) {
                rows if rows == batch.num_rows() => Ok(batch),
                0 => return Poll::Ready(None),
                rows => Ok(batch.slice(0, rows)),
            },
        };
        Poll::Ready(Some(next))
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
                if self.run.as_ref().is_some_and(|run| run.is_fetched()) {
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
