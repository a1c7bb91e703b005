//! The state of a fragment over a chunk: the output of the first stage of an aggregation.

use std::sync::Arc;

use coscan_runtime::{BufferManager, MetadataReservation};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;

/// The most groups of a state that is published.
pub(crate) const GROUPS_MAX: usize = 4096;

/// A chunk has at least so many rows for each group of a state that is published. With fewer it costs little less to merge states
/// than to compute them. One group is published in any case.
const ROWS_PER_GROUP: u64 = 16;

/// The memory of a state beside its columns, in bytes.
const OVERHEAD_BYTES: usize = 512;

/// What was collected of the state of a chunk.
#[derive(Debug)]
pub(crate) enum Collected {
    State(Vec<RecordBatch>),
    Not(NotPublished),
}

/// The reason why a state is not published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotPublished {
    /// It has too many groups, or takes too much memory.
    TooLarge,
    /// There is no memory for it, or it cannot be copied.
    Failed,
}

/// All states take at most one in this many bytes of the memory budget.
const MEMORY_DIVISOR: u64 = 100;

/// A state takes at most one in this many bytes of the memory for all of them.
const STATE_DIVISOR: u64 = 16;

/// A published state, in memory of its own.
#[derive(Debug)]
pub(crate) struct ChunkState {
    columns: Vec<ArrayRef>,
    rows: usize,
    bytes: u64,
    _memory: MetadataReservation,
}

impl ChunkState {
    /// A state of a chunk of so many rows that others can use. Its key takes so many bytes beside the usual ones.
    pub(super) fn new(
        manager: &BufferManager,
        schema: &SchemaRef,
        batches: &[RecordBatch],
        (chunk_rows, key_bytes): (u64, usize),
    ) -> Result<Self, NotPublished> {
        let groups: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let is_small = groups <= GROUPS_MAX && groups as u64 * ROWS_PER_GROUP <= chunk_rows;
        if groups > 1 && !is_small {
            return Err(NotPublished::TooLarge);
        }
        // Errors here are none of the query, which has its state.
        let copied = |batch: RecordBatch| {
            batch.columns().iter().map(copied).collect::<Result<Vec<_>, ArrowError>>()
        };
        let columns = concat_batches(schema, batches).and_then(copied);
        let columns = columns.map_err(|_| NotPublished::Failed)?;
        let bytes = columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>();
        let bytes = (bytes + key_bytes + OVERHEAD_BYTES) as u64;
        if bytes > manager.options().memory_bytes / MEMORY_DIVISOR / STATE_DIVISOR {
            return Err(NotPublished::TooLarge);
        }
        let memory = manager.metadata_memory::<Self>(bytes, MEMORY_DIVISOR);
        let memory = memory.ok_or(NotPublished::Failed)?;
        Ok(Self { columns, rows: groups, bytes, _memory: memory })
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
    ) -> datafusion::error::Result<Vec<RecordBatch>> {
        let batch = RecordBatch::try_new(Arc::clone(schema), self.columns.clone())?;
        let batch_rows = batch_rows.max(1);
        let starts = (0..self.rows).step_by(batch_rows);
        Ok(starts.map(|start| batch.slice(start, batch_rows.min(self.rows - start))).collect())
    }
}

/// An array without memory of others: the texts of views may be in large buffers.
fn copied(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let all = UInt32Array::from_iter_values(0..array.len() as u32);
    let array = take(array, &all, None)?;
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    })
}
