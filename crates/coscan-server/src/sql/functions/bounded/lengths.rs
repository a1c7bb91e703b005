//! The lengths and numbers of arguments, row by row. A value that is the same for all rows is not repeated.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::kernels::length::length;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

/// The approximate minimum bytes of a value.
const VALUE: i64 = 8;

/// A number for each row.
#[derive(Debug)]
pub(super) enum Numbers {
    Same(i64),
    /// Numbers of type Int64.
    Each(ArrayRef),
}

impl Numbers {
    /// The number of a row, or 0 for NULL.
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

/// The bytes of texts and binary values, the number of elements of lists, and 1 for all other values.
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

/// The bytes of each value.
pub(super) fn bytes(value: &ColumnarValue) -> Result<Numbers> {
    let (array, is_same) = match value {
        ColumnarValue::Array(array) => (Arc::clone(array), false),
        ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
    };
    let bytes = bytes_of_rows(&array)?;
    Ok(match is_same {
        true => Numbers::Same(bytes.first().copied().unwrap_or_default()),
        false => Numbers::Each(Arc::new(Int64Array::from(bytes))),
    })
}

/// The bytes of each row. Those of elements of lists and of parts of structs are added up.
fn bytes_of_rows(array: &ArrayRef) -> Result<Vec<i64>> {
    let sums = |ends: Vec<usize>, values: &ArrayRef| -> Result<Vec<i64>> {
        let values = bytes_of_rows(values)?;
        let rows = ends.windows(2).map(|ends| values[ends[0]..ends[1]].iter().sum::<i64>() + VALUE);
        Ok(rows.collect())
    };
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let ends = lists.offsets().iter().map(|end| *end as usize);
            sums(ends.collect(), lists.values())
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let ends = lists.offsets().iter().map(|end| *end as usize);
            sums(ends.collect(), lists.values())
        }
        DataType::Struct(_) => {
            let mut all = vec![VALUE; array.len()];
            for column in array.as_struct().columns() {
                all.iter_mut().zip(bytes_of_rows(column)?).for_each(|(all, one)| *all += one);
            }
            Ok(all)
        }
        of if of.is_string() || of.is_binary() => {
            let lengths =
                cast_with_options(&length(array)?, &DataType::Int64, &Default::default())?;
            let lengths = lengths.as_primitive::<Int64Type>();
            Ok(lengths.iter().map(|length| length.unwrap_or_default() + VALUE).collect())
        }
        _ => {
            let average = array.get_array_memory_size() / array.len().max(1);
            let average = i64::try_from(average).unwrap_or(i64::MAX);
            Ok(vec![average.clamp(VALUE, 1 << 20); array.len()])
        }
    }
}

/// The numbers themselves. Points in time are in microseconds. `None` for other values.
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
