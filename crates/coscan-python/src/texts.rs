//! Values as text, for people.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::prelude::*;

use crate::errors::from_arrow;

/// The texts of an array, NULL as an empty text.
pub(crate) fn texts(array: &ArrayRef) -> PyResult<Vec<String>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options).map_err(from_arrow)?;
    let text = |row| formatter.value(row).try_to_string().map_err(from_arrow);
    (0..array.len()).map(text).collect()
}

/// The rows of a batch as texts.
pub(crate) fn rows(batch: &RecordBatch) -> PyResult<Vec<Vec<Option<String>>>> {
    let columns = batch.columns().iter().map(texts).collect::<PyResult<Vec<_>>>()?;
    let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
    let value =
        |row: usize, (column, nulls): (&Vec<String>, &Option<arrow::buffer::NullBuffer>)| {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            (!is_null).then(|| column[row].clone())
        };
    let row = |row| columns.iter().zip(&nulls).map(|both| value(row, both)).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}
