//! The record batches of one partition.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use futures::Stream;

use crate::execution::chunk_reader::ChunkReader;
use crate::execution::executions::Execution;
use crate::execution::row_filter::RowFilter;

/// The parameters of the output of a stream.
pub(crate) struct Output {
    pub(crate) schema: SchemaRef,
    /// Removes the rows that do not pass.
    pub(crate) filter: Option<RowFilter>,
    /// The maximum number of rows.
    pub(crate) fetch: Option<usize>,
    /// The maximum number of rows of a batch.
    pub(crate) batch_rows: usize,
}

/// An execution of a partition as a stream. Dropping it cancels the rest.
pub(crate) struct SharedScanStream {
    output: Output,
    /// `None` once all needed rows were read.
    reader: Option<ChunkReader>,
    /// The rows to return next.
    rows: Option<RecordBatch>,
    baseline: BaselineMetrics,
}

impl SharedScanStream {
    pub(crate) fn new(execution: Execution, output: Output, baseline: BaselineMetrics) -> Self {
        let reader = (output.fetch != Some(0)).then(|| ChunkReader::new(execution));
        Self { output, reader, rows: None, baseline }
    }

    /// Stops reading, and frees all resources that reading held.
    fn end(&mut self) {
        if self.reader.take().is_some() {
            self.baseline.done();
        }
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(batch) = self.next_batch() {
                return Poll::Ready(Some(Ok(batch)));
            }
            let Some(reader) = &mut self.reader else { return Poll::Ready(None) };
            let taken = match ready!(reader.poll_read(context)) {
                Some(read) => read.and_then(|(_, batch)| self.take(batch)),
                None => {
                    self.end();
                    self.output.filter.as_mut().map_or(Ok(()), RowFilter::finish)
                }
            };
            if let Err(error) = taken {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    /// Takes rows that were read, and keeps those that pass the filter.
    fn take(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(filter) = &mut self.output.filter else {
            self.rows = Some(batch);
            return Ok(());
        };
        filter.push(&batch)?;
        let is_enough = self.output.fetch.is_some_and(|fetch| filter.waiting_rows() >= fetch);
        if is_enough { filter.finish() } else { Ok(()) }
    }

    /// The next batch of the rows taken so far. It is a slice, so that shared columns are not copied.
    fn next_batch(&mut self) -> Option<RecordBatch> {
        if self.rows.is_none() {
            self.rows = self.output.filter.as_mut().and_then(RowFilter::next);
        }
        let rows = self.rows.take()?;
        let rows_max = self.output.fetch.unwrap_or(usize::MAX).min(self.output.batch_rows.max(1));
        let batch = if rows.num_rows() > rows_max { rows.slice(0, rows_max) } else { rows.clone() };
        let given = batch.num_rows();
        if let Some(fetch) = &mut self.output.fetch {
            *fetch -= given;
        }
        if self.output.fetch == Some(0) {
            // Frees everything now instead of at the next poll.
            self.output.filter = None;
            self.end();
        } else if given < rows.num_rows() {
            self.rows = Some(rows.slice(given, rows.num_rows() - given));
        }
        Some(batch)
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
            }
            Poll::Ready(Some(Err(_))) => {
                (self.rows, self.output.filter) = (None, None);
                self.end();
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }
}

impl RecordBatchStream for SharedScanStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output.schema)
    }
}

impl Drop for SharedScanStream {
    fn drop(&mut self) {
        self.end();
    }
}
