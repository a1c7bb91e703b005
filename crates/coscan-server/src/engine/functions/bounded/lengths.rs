//! Lengths and numbers of arguments, row by row. A value that is the same for all rows is not repeated for it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::kernels::length::length;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

/// A number for each row.
#[derive(Debug)]
pub(super) enum Numbers {
    Same(i64),
    /// Numbers of type Int64.
    Each(ArrayRef),
}

impl Numbers {
    /// That of a row; 0 for NULL.
    pub(super) fn at(&self, row: usize) -> i64 {
        match self {
            Self::Same(number) => *number,
            Self::Each(array) if array.is_valid(row) => {
                array.as_primitive::<Int64Type>().value(row)
            }
            Self::Each(_) => 0,
        }
    }

    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same(_))
    }
}

/// Bytes of texts and binary values, elements of lists; 1 for all others.
pub(super) fn lengths(value: &ColumnarValue) -> Result<Numbers> {
    let lengths = of(value, |array| match array.data_type() {
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::List(_)
        | DataType::LargeList(_) => Ok(Some(length(array)?)),
        _ => Ok(None),
    })?;
    Ok(lengths.unwrap_or(Numbers::Same(1)))
}

/// The bytes that an element of each value takes in memory, on the average: the length times this is what the value takes.
pub(super) fn bytes_of_element(value: &ColumnarValue) -> Result<i64> {
    let array = match value {
        ColumnarValue::Array(array) => Arc::clone(array),
        ColumnarValue::Scalar(scalar) => scalar.to_array()?,
    };
    let elements = match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().values(),
        DataType::LargeList(_) => array.as_list::<i64>().values(),
        of if of.is_string() || of.is_binary() => return Ok(1),
        _ => &array,
    };
    let bytes = elements.get_array_memory_size() / elements.len().max(1);
    Ok(i64::try_from(bytes.max(8)).unwrap_or(i64::MAX))
}

/// The numbers themselves. Points in time are microseconds; what is no number is `None`.
pub(super) fn numbers(value: &ColumnarValue) -> Result<Option<Numbers>> {
    of(value, |array| {
        let to = match array.data_type() {
            of if of.is_numeric() => DataType::Int64,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            _ => return Ok(None),
        };
        let lenient = CastOptions::default();
        let array = cast_with_options(array, &to, &lenient)?;
        Ok(Some(array))
    })
}

fn of(
    value: &ColumnarValue,
    compute: impl Fn(&dyn Array) -> Result<Option<ArrayRef>>,
) -> Result<Option<Numbers>> {
    let numbers = |array: &dyn Array| -> Result<Option<ArrayRef>> {
        let Some(array) = compute(array)? else { return Ok(None) };
        let lenient = CastOptions::default();
        Ok(Some(cast_with_options(&array, &DataType::Int64, &lenient)?))
    };
    Ok(match value {
        ColumnarValue::Array(array) => numbers(array)?.map(Numbers::Each),
        ColumnarValue::Scalar(scalar) => {
            numbers(&scalar.to_array()?)?.map(|one| Numbers::Same(Numbers::Each(one).at(0)))
        }
    })
}
