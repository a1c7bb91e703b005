//! Scans with small limits (`LIMIT 10`), for which reading whole chunks does not pay. They read the first pages of each
//! column, in one partition, and share nothing. EXPLAIN shows them with `reads=first_pages`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coscan_runtime::{FirstRows, ScanMetrics, ScanRequest};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use futures::{Stream, StreamExt};

use crate::error::from_scan;
use crate::execution::metrics::ScanCounts;
use crate::planning::selectivity::is_worth_first_pages;
use crate::planning::unshared::ScanRequirements;
use crate::planning::unshared_bytes::stored_bytes;
use crate::tables::source::ScanSource;

/// The limit of a scan, in rows, if the first pages of the table serve it better than chunks.
pub(crate) fn rows(source: &ScanSource, requirements: &ScanRequirements<'_>) -> Option<u64> {
    let rows = requirements.fetch? as u64;
    let table = source.table.table();
    let batch_rows = source.manager.options().batch_rows as u64;
    let is_candidate = source.direct_bytes_max > 0
        && requirements.filters.is_empty()
        && !table.is_changed()
        && !requirements.projection.is_empty()
        && (1..=batch_rows.min(table.stored_rows())).contains(&rows);
    if !is_candidate {
        return None;
    }
    let chunks: Vec<_> =
        table.layout().chunks_in(0..rows).map(|chunk| table.layout().rows(chunk)).collect();
    let chunk_rows: u64 = chunks.iter().map(|rows| rows.end - rows.start).sum();
    let chunk_bytes = || stored_bytes(table, requirements.projection, &chunks);
    is_worth_first_pages(rows, chunk_rows, chunk_bytes).then_some(rows)
}

/// The first rows of a table as a stream. Dropping it cancels the rest.
pub(crate) struct FirstPagesStream {
    schema: SchemaRef,
    /// `None` once the stream has ended.
    rows: Option<FirstRows>,
    counts: ScanCounts,
    baseline: BaselineMetrics,
}

impl FirstPagesStream {
    /// Creates the stream, which reads nothing before it is polled.
    pub(crate) fn new(
        source: &ScanSource,
        request: ScanRequest,
        counts: ScanCounts,
        baseline: BaselineMetrics,
    ) -> Result<Self> {
        let rows = source.manager.first_rows(&source.table, request).map_err(from_scan)?;
        Ok(Self { schema: Arc::clone(rows.schema()), rows: Some(rows), counts, baseline })
    }

    /// Ends the stream and frees all resources that it held.
    fn end(&mut self) {
        if let Some(rows) = self.rows.take() {
            self.counts.add(&ScanMetrics::default(), &rows.metrics());
            self.baseline.done();
        }
    }
}

impl Stream for FirstPagesStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let timer = self.baseline.elapsed_compute().clone();
        let timer = timer.timer();
        let Some(rows) = &mut self.rows else { return Poll::Ready(None) };
        let next = ready!(rows.poll_next_unpin(context));
        drop(timer);
        match &next {
            Some(Ok(batch)) => {
                batch.record_output(&self.baseline);
            }
            Some(Err(_)) | None => self.end(),
        }
        Poll::Ready(next.map(|batch| batch.map_err(from_scan)))
    }
}

impl RecordBatchStream for FirstPagesStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for FirstPagesStream {
    fn drop(&mut self) {
        self.end();
    }
}
