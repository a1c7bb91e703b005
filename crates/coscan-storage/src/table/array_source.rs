//! Where the arrays of a decoder come from.

use arrow::compute::take;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

/// The source of arrays.
pub(super) enum Source {
    /// Stored pages.
    Pages(Box<ParquetRecordBatchReader>),
    /// One value, an array of one, in every row.
    Value { value: ArrayRef, batch_rows: usize },
    /// The values of all rows left.
    Values { values: ArrayRef, batch_rows: usize },
}

impl Source {
    /// The next rows; `None` at the end. A repeated value yields at most `rows_left`.
    pub(super) fn next(&mut self, rows_left: u64) -> Result<Option<ArrayRef>, ArrowError> {
        match self {
            Self::Pages(reader) => {
                Ok(reader.next().transpose()?.and_then(|batch| batch.columns().first().cloned()))
            }
            Self::Value { value, batch_rows } => {
                let rows = usize::try_from(rows_left).unwrap_or(usize::MAX).min(*batch_rows);
                take(value, &UInt32Array::from(vec![0; rows]), None).map(Some)
            }
            Self::Values { values, batch_rows } => {
                let rows = values.len().min(*batch_rows);
                let next = values.slice(0, rows);
                *values = values.slice(rows, values.len() - rows);
                Ok(Some(next))
            }
        }
    }
}
