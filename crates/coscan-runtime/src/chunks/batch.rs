//! Record batches made of decoded columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use coscan_storage::table::ParquetTable;

use crate::error::ScanError;

/// A batch of columns that have the types of the schema and `rows` rows each.
///
/// # Errors
/// If a column that is declared NOT NULL has NULLs.
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

/// The schema of batches of some columns of a table.
///
/// # Errors
/// If the table has no such column.
pub(crate) fn schema_of(table: &ParquetTable, columns: &[usize]) -> Result<SchemaRef, ScanError> {
    let fields = table.schema().fields();
    let field = |&column: &usize| {
        let unknown = ScanError::UnknownColumn { column, columns: fields.len() };
        fields.get(column).cloned().ok_or(unknown)
    };
    Ok(Arc::new(Schema::new(columns.iter().map(field).collect::<Result<Vec<_>, _>>()?)))
}

/// The distinct columns of a batch, and the position among them of each field of the batch.
pub(crate) fn distinct(columns: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut distinct = columns.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let fields = columns.iter().map(|column| distinct.binary_search(column));
    let fields = fields.collect::<Result<_, _>>().expect("every column is among them");
    (distinct, fields)
}
