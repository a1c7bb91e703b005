//! Inserted rows: few of them are kept in memory, many are written to a file.

use std::sync::Arc;

use coscan_database::Transaction;
use coscan_storage::table::{ColumnValues, Value};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::error::from_database;
use crate::managed::file_writer::FileWriter;
use crate::managed::table::ManagedTable;

/// The most rows of one statement that are kept in memory. More are written to a file.
const ROWS_IN_MEMORY_MAX: usize = 65_536;

/// How many rows are inserted before other tasks have their turn.
const ROWS_AT_ONCE: usize = 1024;

/// The most bytes that they take.
const BYTES_IN_MEMORY_MAX: usize = 16 << 20;

/// The memory that each value of a kept row takes, in bytes, beside the bytes of a string.
const VALUE_BYTES: usize = 48;

/// The rows that a statement inserts.
pub(crate) struct InsertedRows {
    schema: SchemaRef,
    /// The rows that are not in the file.
    kept: Vec<RecordBatch>,
    kept_rows: usize,
    kept_bytes: usize,
    file: Option<FileWriter>,
}

impl InsertedRows {
    pub(crate) fn new(table: &ManagedTable) -> Self {
        Self {
            schema: Arc::clone(table.columns()),
            kept: Vec::new(),
            kept_rows: 0,
            kept_bytes: 0,
            file: None,
        }
    }

    /// Adds rows, which have the columns of the table.
    ///
    /// # Errors
    /// If there is no memory for them, or the file cannot be written.
    pub(crate) async fn add(
        &mut self,
        table: &ManagedTable,
        batch: &RecordBatch,
        memory: &mut MemoryReservation,
    ) -> Result<()> {
        let fields = self.schema.fields().iter();
        let columns = batch.columns().iter().zip(fields);
        let columns = columns.map(|(array, field)| as_type(array, field.data_type()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let heap_bytes = columns.iter().map(|array| ColumnValues::new(array).heap_bytes());
        let bytes = heap_bytes.sum::<usize>() + batch.num_rows() * columns.len() * VALUE_BYTES;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        self.kept_rows += batch.num_rows();
        self.kept_bytes += bytes;
        let keeps = self.kept_rows <= ROWS_IN_MEMORY_MAX
            && self.kept_bytes <= BYTES_IN_MEMORY_MAX
            && table.database().has_memory();
        if self.file.is_none() && keeps {
            memory.try_grow(bytes)?;
            self.kept.push(batch);
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(FileWriter::new(table).await?);
        }
        if let Some(file) = &mut self.file {
            for batch in std::mem::take(&mut self.kept).into_iter().chain([batch]) {
                file.write(&batch).await?;
            }
            memory.try_resize(file.memory_bytes())?;
        }
        Ok(())
    }

    /// Inserts the rows in a transaction. Returns the path of the file, if one was written.
    ///
    /// # Errors
    /// If the file cannot be written, or the table was dropped.
    pub(crate) async fn finish(
        self,
        table: &ManagedTable,
        transaction: &mut Transaction<Value>,
        memory: &mut MemoryReservation,
    ) -> Result<Option<String>> {
        for batch in &self.kept {
            let columns: Vec<_> = batch.columns().iter().map(ColumnValues::new).collect();
            for row in 0..batch.num_rows() {
                if row % ROWS_AT_ONCE == 0 {
                    tokio::task::yield_now().await; // The statement may be cancelled meanwhile.
                }
                let values: Vec<_> = columns.iter().map(|column| column.get(row)).collect();
                transaction.insert(table.id(), values).map_err(from_database)?;
            }
        }
        let Some(file) = self.file else { return Ok(None) };
        let (id, file) = file.finish().await?;
        memory.free();
        let path = file.path.to_string();
        transaction.add_file(table.id(), id, file).map_err(from_database)?;
        Ok(Some(path))
    }
}

/// An array as one of a type.
///
/// # Errors
/// If a value has no counterpart in the type.
pub(crate) fn as_type(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(array, data_type, &options)?)
}
