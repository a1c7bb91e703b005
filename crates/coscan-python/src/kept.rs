//! Rows in memory.

use arrow::array::RecordBatch;
use coscan_datafusion::slice_bytes;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::StreamExt;

/// Rows in memory, which counts for the budget of their session.
pub(crate) struct Kept {
    batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

impl Kept {
    /// Keeps the rows of a query that was executed.
    ///
    /// # Errors
    /// If the budget does not have the memory.
    pub(crate) fn executed(query: &DataFrame, batches: Vec<RecordBatch>) -> EngineResult<Self> {
        let memory = reservation(query);
        batches.iter().try_for_each(|batch| memory.try_grow(slice_bytes(batch)))?;
        Ok(Self { batches, _memory: memory })
    }

    /// Reads the rows of a query: all, or more than `rows_max` of them. Returns whether they are all.
    ///
    /// # Errors
    /// If the query fails, or the budget does not have the memory.
    pub(crate) async fn read(
        query: &DataFrame,
        mut rows: SendableRecordBatchStream,
        rows_max: Option<usize>,
    ) -> EngineResult<(Self, bool)> {
        let (memory, mut batches, mut count) = (reservation(query), Vec::new(), 0);
        while rows_max.is_none_or(|rows_max| count <= rows_max) {
            let Some(batch) = rows.next().await.transpose()? else {
                return Ok((Self { batches, _memory: memory }, true));
            };
            memory.try_grow(slice_bytes(&batch))?;
            count += batch.num_rows();
            batches.push(batch);
        }
        Ok((Self { batches, _memory: memory }, false))
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(crate) fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A reservation of no bytes in the session's budget.
fn reservation(query: &DataFrame) -> MemoryReservation {
    MemoryConsumer::new("result in Python").register(query.task_ctx().memory_pool())
}
