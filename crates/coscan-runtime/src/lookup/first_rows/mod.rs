//! The first rows of chunks, from the first pages of their columns. A query for ten rows of a million does not wait
//! until all of them are read and decoded.
//!
//! Reads bypass the pool, because no other scan can use so few pages of each column; pages in the pool are used. What
//! is read is charged to the budget as long as it is held, and so are the rows.

mod chunk_reader;
mod fetch;

use std::collections::BTreeMap;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coscan_core::{ChunkIndex, ScanCounts};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use log::debug;

use crate::chunks::batch::distinct;
use crate::driver::Driver;
use crate::error::ScanError;
use crate::observe::metrics::{ScanCounters, ScanMetrics};
use crate::scans::request::ScanRequest;
use crate::scans::scan::Scan;
use crate::scans::stream::ScanStream;
use crate::tables::table::SharedTable;
use chunk_reader::ChunkReader;

/// The first rows of chunks of a table, as record batches: one per chunk. Drop it to stop.
///
/// It ends after an error.
pub struct FirstRows {
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch, ScanError>>,
    progress: Arc<Progress>,
}

/// Counters, shared with the reader.
struct Progress {
    counters: ScanCounters,
    bytes_read: AtomicU64,
    bytes_reused: AtomicU64,
    /// The scan that gives the remaining rows, if one is needed.
    scan: OnceLock<Arc<Scan>>,
}

impl FirstRows {
    pub(crate) fn start(
        driver: &Arc<Driver>,
        table: &SharedTable,
        request: ScanRequest,
    ) -> Result<Self, ScanError> {
        let schema = request.schema(table.table())?;
        let progress = Arc::new(Progress {
            counters: ScanCounters::new(Arc::clone(driver.slices_of_all())),
            bytes_read: AtomicU64::new(0),
            bytes_reused: AtomicU64::new(0),
            scan: OnceLock::new(),
        });
        let (columns, fields) = distinct(&request.columns);
        let reader = Reader {
            rows: table.table().rows_by_chunk(&request.rows),
            request,
            chunks: ChunkReader {
                driver: Arc::clone(driver),
                table: table.clone(),
                schema: Arc::clone(&schema),
                columns,
                fields,
                progress: Arc::clone(&progress),
            },
            rest: None,
        };
        let batches = stream::try_unfold(reader, Reader::next).boxed();
        Ok(Self { schema, batches, progress })
    }

    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Its counters so far.
    #[must_use]
    pub fn metrics(&self) -> ScanMetrics {
        let Progress { counters, bytes_read, bytes_reused, scan } = &*self.progress;
        let metrics = counters.with_chunks(ScanCounts {
            bytes_read: bytes_read.load(Ordering::Relaxed),
            bytes_reused: bytes_reused.load(Ordering::Relaxed),
            ..ScanCounts::default()
        });
        scan.get().map_or(metrics, |scan| metrics.plus(&scan.metrics()))
    }
}

impl Stream for FirstRows {
    type Item = Result<RecordBatch, ScanError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.poll_next_unpin(context)
    }
}

impl std::fmt::Debug for FirstRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FirstRows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Reads the remaining rows.
struct Reader {
    chunks: ChunkReader,
    request: ScanRequest,
    /// The remaining rows of each chunk, counted from its start.
    rows: BTreeMap<ChunkIndex, Vec<Range<u64>>>,
    /// The batches of a scan of all remaining rows, if there is one.
    rest: Option<ScanStream>,
}

impl Reader {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>, ScanError> {
        if self.rest.is_none()
            && let Some((&chunk, rows)) = self.rows.first_key_value()
        {
            let unfit = match self.chunks.read(chunk, rows).await {
                Ok(batch) => {
                    self.rows.pop_first();
                    return Ok(Some((batch, self)));
                }
                Err(unfit) => unfit,
            };
            debug!("chunks are read for few rows from {chunk} on: {unfit}");
            self.rest = Some(self.scan_from(chunk)?);
        }
        let Some(rest) = &mut self.rest else { return Ok(None) };
        let batch = rest.next().await.transpose()?;
        Ok(batch.map(|batch| (batch, self)))
    }

    /// A scan of all rows from a chunk on. A lasting error occurs again there, and is reported.
    fn scan_from(&self, chunk: ChunkIndex) -> Result<ScanStream, ScanError> {
        let ChunkReader { driver, table, progress, .. } = &self.chunks;
        let start = table.table().layout().rows(chunk).start;
        let rest = self.request.rows.iter().map(|rows| rows.start.max(start)..rows.end);
        let rows = rest.filter(|rows| !rows.is_empty()).collect();
        let request = ScanRequest { rows, workers: 1, ..self.request.clone() };
        let scan = Scan::start(driver, table, request, None)?;
        Ok(progress.scan.get_or_init(|| scan).worker(0))
    }
}
