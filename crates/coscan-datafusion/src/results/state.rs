//! The state of a fragment over a chunk: the output of the first stage of an aggregation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coscan_runtime::{BufferManager, MetadataReservation};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;

/// The most groups of a state that is published.
pub(crate) const GROUPS_MAX: usize = 4096;

/// A chunk has at least so many rows for each group of a state that is published. With fewer it costs little less to merge states
/// than to compute them.
const ROWS_PER_GROUP: u64 = 16;

/// The memory of a state beside its columns, in bytes.
const OVERHEAD_BYTES: usize = 512;

/// A published state, in memory of its own.
#[derive(Debug)]
pub(crate) struct ChunkState {
    columns: Vec<ArrayRef>,
    rows: usize,
    bytes: u64,
    /// The bytes of all states, in which it is counted.
    all_bytes: Arc<AtomicU64>,
    _memory: MetadataReservation,
}

impl Drop for ChunkState {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The reason why there is no state for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotPublished {
    /// It has too many groups.
    TooLarge,
    /// There is no memory for it.
    NoMemory,
}

impl ChunkState {
    /// A state that others can use, of a chunk of so many rows. It is counted in `all_bytes`.
    ///
    /// # Errors
    /// If the batches differ in their columns.
    pub(super) fn new(
        manager: &BufferManager,
        all_bytes: &Arc<AtomicU64>,
        schema: &SchemaRef,
        batches: &[RecordBatch],
        chunk_rows: u64,
    ) -> Result<Result<Self, NotPublished>> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows > GROUPS_MAX
            || (rows as u64).saturating_mul(ROWS_PER_GROUP) > chunk_rows.max(ROWS_PER_GROUP)
        {
            return Ok(Err(NotPublished::TooLarge));
        }
        let batch = concat_batches(schema, batches)?;
        let columns = batch.columns().iter().map(copied).collect::<Result<Vec<_>>>()?;
        let bytes = columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>();
        let bytes = (bytes + OVERHEAD_BYTES) as u64;
        let Some(memory) = manager.metadata_memory::<Self>(bytes) else {
            return Ok(Err(NotPublished::NoMemory));
        };
        all_bytes.fetch_add(bytes, Ordering::Relaxed);
        let all_bytes = Arc::clone(all_bytes);
        Ok(Ok(Self { columns, rows, bytes, all_bytes, _memory: memory }))
    }

    /// Its memory in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The state in batches of a schema with these types.
    ///
    /// # Errors
    /// If the schema does not fit.
    pub(crate) fn batches(
        &self,
        schema: &SchemaRef,
        batch_rows: usize,
    ) -> Result<Vec<RecordBatch>> {
        let batch = RecordBatch::try_new(Arc::clone(schema), self.columns.clone())?;
        let starts = (0..self.rows).step_by(batch_rows.max(1));
        Ok(starts.map(|start| batch.slice(start, batch_rows.min(self.rows - start))).collect())
    }
}

/// An array without memory of others: the texts of views may be in large buffers.
fn copied(array: &ArrayRef) -> Result<ArrayRef> {
    let all = UInt32Array::from_iter_values(0..array.len() as u32);
    let array = take(array, &all, None)?;
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    })
}
