//! Values as text, for people.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::prelude::*;

use crate::errors::from_arrow;

/// The texts of an array, NULL as `None`.
pub(crate) fn texts(array: &ArrayRef) -> PyResult<Vec<Option<String>>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options).map_err(from_arrow)?;
    let nulls = array.logical_nulls();
    let text = |row| match &nulls {
        Some(nulls) if nulls.is_null(row) => Ok(None),
        _ => formatter.value(row).try_to_string().map(Some).map_err(from_arrow),
    };
    (0..array.len()).map(text).collect()
}

/// The texts of a row.
pub(crate) type Row = Vec<Option<String>>;

/// The rows of a batch as texts.
pub(crate) fn rows(batch: &RecordBatch) -> PyResult<Vec<Row>> {
    let columns = batch.columns().iter().map(texts).collect::<PyResult<Vec<_>>>()?;
    let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}
