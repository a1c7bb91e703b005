//! Record batches of what was decoded.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use crate::error::ScanError;

/// A batch of columns that have the types of the schema and so many rows each.
///
/// # Errors
/// If one has NULLs though it is declared without.
pub(crate) fn record_batch(
    schema: &SchemaRef,
    arrays: Vec<ArrayRef>,
    rows: u64,
) -> Result<RecordBatch, ScanError> {
    let columns = schema.fields().iter().zip(&arrays);
    let mut untrue =
        columns.filter(|(field, array)| !field.is_nullable() && array.logical_null_count() > 0);
    if let Some((field, _)) = untrue.next() {
        return Err(ScanError::NullsDeclaredAway { column: field.name().clone() });
    }
    let options = RecordBatchOptions::new().with_row_count(usize::try_from(rows).ok());
    let batch = RecordBatch::try_new_with_options(SchemaRef::clone(schema), arrays, &options);
    Ok(batch.expect("columns have the table's types and as many rows as each other"))
}
