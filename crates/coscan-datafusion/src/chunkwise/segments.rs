//! The rows of a partition in segments: runs of whole chunks, each aggregated by an execution of its own.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coscan_runtime::core::ChunkIndex;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};

use super::loan::Lendable;
use crate::execution::chunk_reader::{ChunkReader, Read};
use crate::shared_results::{ChunkState, Subscription};

/// The chunks of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentKind {
    /// One chunk, whose state is of use to other queries.
    OneChunk,
    /// All chunks up to one that is of use to others.
    ManyChunks,
}

/// The beginning of the next part of a partition.
pub(super) enum Part {
    /// The rows of chunks.
    Segment(SegmentKind),
    /// The state of a chunk from another query.
    State(Arc<ChunkState>),
}

/// The rows of a partition.
pub(super) struct Segments {
    reader: ChunkReader,
    baseline: BaselineMetrics,
    schema: SchemaRef,
    batch_rows: usize,
    /// What was read beyond the end of the last segment.
    ahead: Option<Read>,
    /// The rows to give next.
    rows: Option<RecordBatch>,
    kind: SegmentKind,
    chunk: Option<ChunkIndex>,
    /// Chunks of the segment.
    chunks: usize,
    chunk_rows: u64,
    /// Whether all rows of the chunk were read.
    has_ended: bool,
}

impl Segments {
    /// Takes the rows of a reader, which have this schema, in batches of at most so many rows. `baseline` counts them.
    pub(super) fn new(
        reader: ChunkReader,
        baseline: BaselineMetrics,
        schema: SchemaRef,
        batch_rows: usize,
    ) -> Self {
        Self {
            reader,
            baseline,
            schema,
            batch_rows: batch_rows.max(1),
            ahead: None,
            rows: None,
            kind: SegmentKind::ManyChunks,
            chunk: None,
            chunks: 0,
            chunk_rows: 0,
            has_ended: true,
        }
    }

    /// The next part, or `None` at the end. Rows of a segment are lent.
    pub(super) async fn next(&mut self) -> Result<Option<Part>> {
        let read = match self.ahead.take() {
            Some(read) => Some(read),
            None => poll_fn(|context| self.poll_read(context)).await?,
        };
        Ok(match read {
            None => None,
            Some(Read::State(state)) => Some(Part::State(state)),
            Some(Read::Rows { chunk, batch, is_last }) => {
                self.kind = self.kind_for(chunk);
                self.chunks = 0;
                self.begin(chunk);
                self.take_rows(batch, is_last);
                Some(Part::Segment(self.kind))
            }
        })
    }

    /// The chunk and its rows, if the last segment was one that others can use and all its rows were given.
    pub(super) fn complete_chunk(&self) -> Option<(ChunkIndex, u64)> {
        let is_complete =
            self.kind == SegmentKind::OneChunk && self.has_ended && self.rows.is_none();
        self.chunk.filter(|_| is_complete).map(|chunk| (chunk, self.chunk_rows))
    }

    /// The chunks of the last segment.
    pub(super) fn chunk_count(&self) -> usize {
        self.chunks
    }

    /// The query among those that share results.
    pub(super) fn subscription(&self) -> Option<&Subscription> {
        self.reader.subscription()
    }

    fn kind_for(&self, chunk: ChunkIndex) -> SegmentKind {
        let is_wanted = self.subscription().is_some_and(|others| others.is_wanted(chunk));
        if is_wanted { SegmentKind::OneChunk } else { SegmentKind::ManyChunks }
    }

    fn begin(&mut self, chunk: ChunkIndex) {
        self.chunk = Some(chunk);
        self.chunks += 1;
        self.chunk_rows = 0;
    }

    fn take_rows(&mut self, batch: RecordBatch, is_last: bool) {
        self.chunk_rows += batch.num_rows() as u64;
        self.has_ended = is_last;
        self.rows = Some(batch);
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Read>>> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let timer = elapsed.timer();
        let read = self.reader.poll_next(context);
        drop(timer);
        Poll::Ready(ready!(read).transpose())
    }

    /// The next rows to give, in a slice that is not too long.
    fn next_rows(&mut self) -> Option<RecordBatch> {
        let rows = self.rows.take()?;
        let given = rows.num_rows().min(self.batch_rows);
        if given < rows.num_rows() {
            self.rows = Some(rows.slice(given, rows.num_rows() - given));
        }
        Some(rows.slice(0, given).record_output(&self.baseline))
    }
}

impl Lendable for Segments {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn poll_rows(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(rows) = self.next_rows() {
                return Poll::Ready(Some(Ok(rows)));
            }
            if self.ahead.is_some() || self.has_ended && self.kind == SegmentKind::OneChunk {
                return Poll::Ready(None);
            }
            match ready!(self.poll_read(context)) {
                Ok(Some(Read::Rows { chunk, batch, is_last })) => {
                    if self.chunk == Some(chunk) && !self.has_ended {
                        self.take_rows(batch, is_last);
                    } else if self.kind == SegmentKind::ManyChunks
                        && self.kind_for(chunk) == SegmentKind::ManyChunks
                    {
                        self.begin(chunk);
                        self.take_rows(batch, is_last);
                    } else {
                        self.has_ended = true;
                        self.ahead = Some(Read::Rows { chunk, batch, is_last });
                    }
                }
                Ok(Some(state)) => {
                    self.has_ended = true;
                    self.ahead = Some(state);
                }
                Ok(None) => {
                    self.has_ended = true;
                    return Poll::Ready(None);
                }
                Err(error) => {
                    self.chunk = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}
