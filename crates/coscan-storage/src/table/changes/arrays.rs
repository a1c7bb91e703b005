//! Arrays that are made of values, and arrays with other values in some rows.

use std::sync::Arc;

use arrow::array::{ArrayData, make_array};
use arrow::compute::{cast, concat, interleave};
use arrow_array::builder::{BinaryViewBuilder, LargeBinaryBuilder};
use arrow_array::{Array, ArrayRef, BooleanArray, new_empty_array, new_null_array};
use arrow_buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType};

use super::value::{INLINE_BYTES, Kind, Value};

/// The values as an array of a type.
///
/// # Errors
/// If a value has another type.
pub(crate) fn array_of<'a>(
    data_type: &DataType,
    values: impl IntoIterator<Item = &'a Value>,
) -> Result<ArrayRef, ArrowError> {
    let values: Vec<&Value> = values.into_iter().collect();
    let nulls = || NullBuffer::from_iter(values.iter().map(|value| !value.is_null()));
    match Kind::of(data_type) {
        Kind::Boolean => {
            let bits =
                values.iter().map(|value| matches!(value, Value::Fixed(bytes) if bytes[0] > 0));
            Ok(Arc::new(BooleanArray::new(BooleanBuffer::from_iter(bits), Some(nulls()))))
        }
        Kind::Fixed(width) => {
            let mut buffer = MutableBuffer::with_capacity(values.len() * width);
            for value in &values {
                buffer.extend_from_slice(&fixed(value)[..width]);
            }
            let data = ArrayData::builder(data_type.clone()).len(values.len());
            Ok(make_array(data.add_buffer(buffer.into()).nulls(Some(nulls())).build()?))
        }
        Kind::Bytes => bytes_array(data_type, &values),
        Kind::Other => {
            let one = |value: &&Value| match value {
                Value::Other(array) => Arc::clone(array),
                _ => new_null_array(data_type, 1),
            };
            let arrays: Vec<_> = values.iter().map(one).collect();
            let arrays: Vec<_> = arrays.iter().map(|array| &**array).collect();
            if arrays.is_empty() { Ok(new_empty_array(data_type)) } else { concat(&arrays) }
        }
    }
}

/// An array of strings or binaries.
fn bytes_array(data_type: &DataType, values: &[&Value]) -> Result<ArrayRef, ArrowError> {
    let values = values.iter().map(|value| match value {
        Value::Bytes(bytes) => Some(&**bytes),
        _ => None,
    });
    let is_view = matches!(data_type, DataType::Utf8View | DataType::BinaryView);
    let array: ArrayRef = if is_view {
        let mut builder = BinaryViewBuilder::with_capacity(values.len());
        values.for_each(|value| builder.append_option(value));
        Arc::new(builder.finish())
    } else {
        let mut builder = LargeBinaryBuilder::new();
        values.for_each(|value| builder.append_option(value));
        Arc::new(builder.finish())
    };
    cast(&array, data_type)
}

/// An array with other values in some rows.
///
/// # Errors
/// If a value has another type.
pub(crate) fn patched(
    array: &ArrayRef,
    rows: &[usize],
    values: &[&Value],
) -> Result<ArrayRef, ArrowError> {
    if let Kind::Fixed(width) = Kind::of(array.data_type()) {
        return patched_bytes(&array.to_data(), width, rows, values);
    }
    let patches = array_of(array.data_type(), values.iter().copied())?;
    let mut sources: Vec<_> = (0..array.len()).map(|row| (0, row)).collect();
    for (patch, &row) in rows.iter().enumerate() {
        sources[row] = (1, patch);
    }
    interleave(&[&**array, &*patches], &sources)
}

fn patched_bytes(
    data: &ArrayData,
    width: usize,
    rows: &[usize],
    values: &[&Value],
) -> Result<ArrayRef, ArrowError> {
    let (start, rows_in_all) = (data.offset() * width, data.len());
    let mut buffer = MutableBuffer::with_capacity(rows_in_all * width);
    buffer.extend_from_slice(&data.buffers()[0][start..start + rows_in_all * width]);
    let has_nulls = data.nulls().is_some() || values.iter().any(|value| value.is_null());
    let mut valid = has_nulls.then(|| match data.nulls() {
        Some(nulls) => nulls.inner().iter().collect(),
        None => vec![true; rows_in_all],
    });
    for (&row, value) in rows.iter().zip(values) {
        buffer[row * width..(row + 1) * width].copy_from_slice(&fixed(value)[..width]);
        if let Some(valid) = &mut valid {
            valid[row] = !value.is_null();
        }
    }
    let patched = ArrayData::builder(data.data_type().clone()).len(rows_in_all);
    let nulls = valid.map(NullBuffer::from);
    Ok(make_array(patched.add_buffer(buffer.into()).nulls(nulls).build()?))
}

/// The bytes of a value of a fixed width; those of NULL are 0.
fn fixed(value: &Value) -> &[u8; INLINE_BYTES] {
    match value {
        Value::Fixed(bytes) => bytes,
        _ => &[0; INLINE_BYTES],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BinaryViewArray, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray,
        Float64Array, Int64Array, LargeStringArray, ListArray, StringArray, StringViewArray,
    };
    use arrow_buffer::i256;

    use super::*;

    fn arrays() -> Vec<ArrayRef> {
        let text = [Some("a"), None, Some("longer than an inline view"), Some("")];
        let decimals = Decimal128Array::from(vec![Some(1), None, Some(i128::MIN), Some(-3)]);
        let wide = [Some(i256::ONE), None, Some(i256::MIN), Some(i256::MINUS_ONE)];
        let lists = [Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(3)])];
        vec![
            Arc::new(Int64Array::from(vec![Some(1), None, Some(i64::MIN), Some(-7)])),
            Arc::new(Float64Array::from(vec![Some(-0.0), None, Some(f64::NAN), Some(2.5)])),
            Arc::new(Date32Array::from(vec![Some(1), None, Some(-5), Some(0)])),
            Arc::new(decimals.with_precision_and_scale(38, 2).unwrap()),
            Arc::new(Decimal256Array::from(wide.to_vec())),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Arc::new(StringArray::from(text.to_vec())),
            Arc::new(LargeStringArray::from(text.to_vec())),
            Arc::new(StringViewArray::from(text.to_vec())),
            Arc::new(BinaryViewArray::from(text.map(|text| text.map(str::as_bytes)).to_vec())),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
            Arc::new(text.into_iter().collect::<DictionaryArray<Int32Type>>()),
        ]
    }

    #[test]
    fn an_array_is_made_of_its_values() {
        for array in arrays() {
            // A slice has an offset.
            for array in [Arc::clone(&array), array.slice(1, 3), array.slice(2, 0)] {
                let values: Vec<_> = (0..array.len()).map(|row| Value::of(&array, row)).collect();
                let made = array_of(array.data_type(), &values).unwrap();
                assert_eq!(made.data_type(), array.data_type());
                let again = (0..array.len()).map(|row| Value::of(&made, row));
                assert!(again.eq(values), "{made:?} for {array:?}");
                assert_eq!(made.null_count(), array.null_count());
            }
        }
    }

    #[test]
    fn patched_rows_have_the_other_values() {
        for array in arrays() {
            let array = array.slice(1, 3);
            let other = [array.slice(2, 1), new_null_array(array.data_type(), 1)];
            let values: Vec<_> = other.iter().map(|array| Value::of(array, 0)).collect();
            let patched = patched(&array, &[0, 1], &[&values[0], &values[1]]).unwrap();
            let rows: Vec<_> = (0..3).map(|row| Value::of(&patched, row)).collect();
            assert_eq!(rows, [values[0].clone(), Value::Null, values[0].clone()], "{array:?}");
            assert_eq!(patched.data_type(), array.data_type());
        }
    }
}
