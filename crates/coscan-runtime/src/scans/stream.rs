//! The record batches of a scan of one table.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coscan_core::ChunkIndex;
use futures::{Stream, StreamExt};

use crate::error::ScanError;
use crate::scans::scan::Scan;
use crate::scans::worker_stream::WorkerStream;
use crate::tables::snapshot::Snapshot;

/// Record batches of one worker of a scan, in the order in which the scheduler hands out chunks.
///
/// Drop it to stop. The other workers of the scan get all chunks but the one that it has already given rows of, whose
/// remaining rows are lost. After an error it ends, and so do the other workers of the scan.
pub struct ScanStream {
    schema: SchemaRef,
    snapshot: Arc<Snapshot>,
    /// The chunk of core that the last batch is part of.
    chunk: Option<ChunkIndex>,
    /// Whether that batch has the last rows of its chunk.
    chunk_has_ended: bool,
    batches: WorkerStream,
}

impl Scan {
    /// The record batches that one of its workers takes. Call this once for each worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn worker(self: &Arc<Self>, worker: usize) -> ScanStream {
        let batches = WorkerStream::new(self.handle(), worker);
        let snapshot = Arc::clone(self.snapshot());
        ScanStream {
            schema: Arc::clone(self.schema()),
            snapshot,
            chunk: None,
            chunk_has_ended: false,
            batches,
        }
    }
}

impl ScanStream {
    /// The schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The chunk of the table that the last batch is part of. The batches of a chunk come one after another, in the
    /// order of its rows.
    #[must_use]
    pub fn chunk(&self) -> Option<ChunkIndex> {
        self.chunk.map(|chunk| self.snapshot.to_table(chunk))
    }

    /// Whether the last batch has the last rows of its chunk.
    #[must_use]
    pub fn chunk_has_ended(&self) -> bool {
        self.chunk_has_ended
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
        let next = ready!(self.batches.poll_next_unpin(context));
        Poll::Ready(next.map(|next| {
            next.map(|next| {
                (self.chunk, self.chunk_has_ended) = (Some(next.chunk), next.is_last);
                next.batch
            })
        }))
    }
}
