//! A small table in memory.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use coscan_runtime::{BufferManager, SharedTable};
use coscan_testing::{parquet_file, table_in_memory};
use parquet::file::properties::WriterProperties;

const CHUNK_ROWS: usize = 1000;
pub(crate) const CHUNKS: usize = 8;

/// A table of two columns and [`CHUNKS`] chunks.
pub(crate) async fn table(manager: &BufferManager) -> SharedTable {
    let ids = Arc::new(Int64Array::from_iter_values(0..(CHUNKS * CHUNK_ROWS) as i64));
    let batch = RecordBatch::try_from_iter([("id", Arc::clone(&ids) as _), ("same", ids as _)]);
    let batch = batch.unwrap();
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(CHUNK_ROWS)).build();
    manager.register(table_in_memory(parquet_file(&[batch], properties), CHUNK_ROWS as u64).await)
}
