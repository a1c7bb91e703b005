//! The rows of a partition as inputs of a [`ChunkPlan`](super::chunk_plan::ChunkPlan): chunk by chunk, without the keys
//! at the borders of chunks.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coscan_runtime::core::ChunkIndex;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};

use super::borders::Borders;
use super::loan::Lendable;
use crate::execution::chunk_reader::ChunkReader;

/// The rows of a partition, chunk by chunk.
pub(super) struct ChunkRows {
    reader: ChunkReader,
    baseline: BaselineMetrics,
    schema: SchemaRef,
    borders: Borders,
    /// The first rows of the next chunk.
    ahead: Option<(ChunkIndex, RecordBatch)>,
    /// The chunk that is being read.
    chunk: Option<ChunkIndex>,
}

impl ChunkRows {
    /// Takes the batches of a reader, which have this schema and are in the order of some key columns. `baseline`
    /// counts them.
    pub(super) fn new(
        reader: ChunkReader,
        baseline: BaselineMetrics,
        schema: SchemaRef,
        key: Vec<usize>,
    ) -> Self {
        Self { reader, baseline, schema, borders: Borders::new(key), ahead: None, chunk: None }
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<(ChunkIndex, RecordBatch)>>> {
        let read = ready!(self.reader.poll_read(context)).transpose();
        if let Ok(Some((_, batch))) = &read {
            batch.record_output(&self.baseline);
        }
        Poll::Ready(read)
    }

    /// Moves to the next chunk. Returns false if there is none.
    pub(super) async fn next_chunk(&mut self) -> Result<bool> {
        if self.ahead.is_none() {
            self.ahead = poll_fn(|context| self.poll_read(context)).await?;
        }
        let Some((chunk, batch)) = self.ahead.take() else { return Ok(false) };
        self.chunk = Some(chunk);
        self.borders.push(batch)?;
        Ok(true)
    }

    /// The rows of the first and the last key of the chunk, after all other rows were taken.
    pub(super) fn take_border(&mut self) -> Vec<RecordBatch> {
        self.borders.finish()
    }

    /// The next rows of the chunk between its first and its last key, or `None` at its end.
    fn poll_inner(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(batch) = self.borders.next_inner() {
                return Poll::Ready(Some(Ok(batch)));
            }
            let Some(current) = self.chunk else { return Poll::Ready(None) };
            let pushed = match ready!(self.poll_read(context)) {
                Ok(Some((chunk, batch))) if chunk == current => self.borders.push(batch),
                Ok(ahead) => {
                    (self.ahead, self.chunk) = (ahead, None);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = pushed {
                self.chunk = None;
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl Lendable for ChunkRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn poll_rows(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.poll_inner(context)
    }
}
