//! The first rows of one chunk, read window by window, so that memory is bounded however many columns there are.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use coscan_core::{ChunkIndex, MemoryStage};
use coscan_storage::table::{ColumnPrefix, DecodeError};

use super::Progress;
use crate::chunks::batch::record_batch;
use crate::cpu::yield_policy::TIME_SLICE;
use crate::driver::Driver;
use crate::error::ScanError;
use crate::memory::{Charges, Reservation};
use crate::observe::metrics::add_time;
use crate::tables::table::SharedTable;

/// The bytes that are read, then decoded, at a time.
const WINDOW_BYTES: u64 = 8 << 20;

/// Chunks are read whole if more than one in this many of their bytes would be read.
const READ_DIVISOR: u64 = 2;

/// Reads the first rows of chunks of a table.
pub(super) struct ChunkReader {
    pub(super) driver: Arc<Driver>,
    pub(super) table: SharedTable,
    pub(super) schema: SchemaRef,
    /// The distinct columns; `fields` has the position among them of each field of the batches.
    pub(super) columns: Vec<usize>,
    pub(super) fields: Vec<usize>,
    pub(super) progress: Arc<Progress>,
}

/// The reason why a scan has to give the rows instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("they are not the first rows of a row group, or too many")]
    Rows,
    #[error(
        "the pages that hold them are {needed_bytes} of the {all_bytes} bytes of their columns"
    )]
    Bytes { needed_bytes: u64, all_bytes: u64 },
    #[error("memory is short")]
    Memory,
    #[error(transparent)]
    Failed(#[from] ScanError),
}

impl From<DecodeError> for Unfit {
    fn from(error: DecodeError) -> Self {
        Self::Failed(error.into())
    }
}

/// A column whose first pages are being read.
pub(super) struct Column {
    pub(super) position: usize,
    pub(super) prefix: ColumnPrefix,
    /// The memory for what has been read of it.
    memory: Option<Reservation>,
}

impl Column {
    fn needed_bytes(&self) -> u64 {
        self.prefix.wanted().iter().map(|range| range.end - range.start).sum()
    }
}

impl ChunkReader {
    /// Reads the wanted rows of a chunk.
    pub(super) async fn read(
        &self,
        chunk: ChunkIndex,
        rows: &[Range<u64>],
    ) -> Result<RecordBatch, Unfit> {
        let &[Range { start: 0, end: rows }] = rows else { return Err(Unfit::Rows) };
        if rows > self.driver.options().batch_rows as u64 {
            return Err(Unfit::Rows);
        }
        let prefix = |&column: &usize| self.table.table().prefix(chunk, column, rows);
        let prefixes: Option<Vec<_>> = self.columns.iter().map(prefix).collect();
        let prefixes = prefixes.ok_or(Unfit::Rows)?;
        let all_bytes = prefixes.iter().map(ColumnPrefix::all_bytes).sum();
        let column = |(position, prefix)| Column { position, prefix, memory: None };
        let mut pending: VecDeque<_> = prefixes.into_iter().enumerate().map(column).collect();
        let mut arrays = vec![None; pending.len()];
        let (mut done_bytes, mut charges) = (0, Charges::default());
        let mut slice_started = Instant::now();
        while !pending.is_empty() {
            let of_pending = pending.iter().map(|column| column.prefix.needed_bytes());
            let needed_bytes = done_bytes + of_pending.sum::<u64>();
            if needed_bytes.saturating_mul(READ_DIVISOR) > all_bytes {
                return Err(Unfit::Bytes { needed_bytes, all_bytes });
            }
            let mut columns = self.take_window(&mut pending)?;
            let read = self.fetch(chunk, &columns).await?;
            for (column, read) in columns.iter_mut().zip(read) {
                column.prefix.push(read)?;
            }
            for column in columns {
                if slice_started.elapsed() > TIME_SLICE {
                    tokio::task::yield_now().await;
                    slice_started = Instant::now();
                }
                if column.prefix.wanted().is_empty() {
                    done_bytes += column.prefix.needed_bytes();
                    let position = column.position;
                    arrays[position] = Some(self.decode(column, &mut charges)?);
                } else {
                    pending.push_back(column);
                }
            }
        }
        let arrays: Vec<ArrayRef> = arrays.into_iter().flatten().collect();
        let arrays = self.fields.iter().map(|&column| Arc::clone(&arrays[column])).collect();
        Ok(record_batch(&self.schema, arrays, rows)?)
    }

    /// Takes the next columns to read, with memory for what is read of them.
    fn take_window(&self, pending: &mut VecDeque<Column>) -> Result<Vec<Column>, Unfit> {
        let mut columns = Vec::new();
        let mut window_bytes = 0;
        while let Some(column) = pending.front() {
            let bytes = column.needed_bytes();
            if !columns.is_empty() && window_bytes + bytes > WINDOW_BYTES {
                break;
            }
            window_bytes += bytes;
            columns.extend(pending.pop_front());
        }
        let mut memory =
            self.driver.try_reserve(window_bytes, MemoryStage::Opening).ok_or(Unfit::Memory)?;
        for column in &mut columns {
            let more = memory.split_off(column.needed_bytes());
            match &mut column.memory {
                Some(memory) => memory.add(more),
                none => *none = Some(more),
            }
        }
        Ok(columns)
    }

    fn decode(&self, column: Column, charges: &mut Charges) -> Result<ArrayRef, ScanError> {
        let started = Instant::now();
        let mut decoder = self.table.table().decode_prefix(&column.prefix)?;
        let array = decoder.next().expect("a decoder gives all rows asked for, or an error")?;
        let array = compact(array);
        if let Some(mut memory) = column.memory {
            memory.charge(&array, charges);
        }
        self.progress.counters.count_decoded();
        add_time(&self.progress.counters.decode_ns, started.elapsed());
        Ok(array)
    }
}

/// The values without the pages that views refer to.
fn compact(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}
