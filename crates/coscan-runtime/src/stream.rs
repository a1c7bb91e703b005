//! The record batches of a scan of one table.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{Stream, StreamExt};

use crate::error::ScanError;
use crate::scan::Scan;
use crate::worker_stream::WorkerStream;

/// Record batches of one worker of a scan, in the order in which the scheduler hands out chunks.
///
/// Drop it to stop. The other workers of the scan get all chunks but the one that it has already given rows of, whose
/// remaining rows are lost. After an error it ends, and so do the other workers of the scan.
pub struct ScanStream {
    schema: SchemaRef,
    batches: WorkerStream,
}

impl Scan {
    /// The record batches that one of its workers takes. Call it once for each worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn worker(self: &Arc<Self>, worker: usize) -> ScanStream {
        let batches = WorkerStream::new(self.handle(), worker);
        ScanStream { schema: Arc::clone(self.schema()), batches }
    }
}

impl ScanStream {
    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl std::fmt::Debug for ScanStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScanStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch, ScanError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.batches.poll_next_unpin(context);
        next.map(|next| next.map(|batch| batch.map(|batch| batch.batch)))
    }
}
