//! The memory of rows.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;

/// The bytes of the values of a batch, without others in its buffers: a batch may be a slice of larger arrays.
#[must_use]
pub fn slice_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(column_bytes).sum()
}

fn column_bytes(array: &ArrayRef) -> usize {
    let texts = match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
        _ => 0,
    };
    texts + array.to_data().get_slice_memory_size().unwrap_or(0)
}
