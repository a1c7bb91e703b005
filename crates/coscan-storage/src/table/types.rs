//! The types of a column in different files: their common type, and the conversion to it.

use std::sync::Arc;

use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, GenericListArray, MapArray, OffsetSizeTrait, StructArray, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};

/// The type that holds every value of both exactly, if one exists. The two may differ in the width of numbers, in
/// nested nullability and metadata, and in the fields of structs.
pub(super) fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(a.clone());
    }
    Some(match (a, b) {
        (DataType::Null, other) | (other, DataType::Null) => other.clone(),
        (DataType::List(a), DataType::List(b)) => DataType::List(common_field(a, b)?),
        (DataType::LargeList(a), DataType::LargeList(b)) => {
            DataType::LargeList(common_field(a, b)?)
        }
        (DataType::FixedSizeList(a, length), DataType::FixedSizeList(b, other))
            if length == other =>
        {
            DataType::FixedSizeList(common_field(a, b)?, *length)
        }
        (DataType::Map(a, sorted), DataType::Map(b, other)) if sorted == other => {
            DataType::Map(common_field(a, b)?, *sorted)
        }
        (DataType::Struct(a), DataType::Struct(b)) => DataType::Struct(common_fields(a, b)?),
        _ => common_number(a, b)?,
    })
}

fn common_field(a: &FieldRef, b: &FieldRef) -> Option<FieldRef> {
    if a.name() != b.name() {
        return None;
    }
    let data_type = common_type(a.data_type(), b.data_type())?;
    let is_nullable = a.is_nullable() || b.is_nullable();
    Some(Arc::new(a.as_ref().clone().with_data_type(data_type).with_nullable(is_nullable)))
}

/// The fields of both, by name. A field of only one is nullable.
fn common_fields(a: &Fields, b: &Fields) -> Option<Fields> {
    let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let of_a = a.iter().map(|field| match b.find(field.name()) {
        Some((_, other)) => common_field(field, other),
        None => Some(nullable(field)),
    });
    let of_b = b.iter().filter(|field| a.find(field.name()).is_none());
    of_a.chain(of_b.map(|field| Some(nullable(field)))).collect()
}

/// The narrowest number type that holds every value of both exactly.
fn common_number(a: &DataType, b: &DataType) -> Option<DataType> {
    if let (Some(a), Some(b)) = (Integer::of(a), Integer::of(b)) {
        return a.common(b).data_type();
    }
    if let (Some(a), Some(b)) = (float_bits(a), float_bits(b)) {
        return Some(if a.max(b) == 64 { DataType::Float64 } else { DataType::Float32 });
    }
    let digits = |(a, a_scale): (u8, i8), (b, b_scale): (u8, i8), digits_max: u8| {
        let scale = a_scale.max(b_scale);
        let whole = (i16::from(a) - i16::from(a_scale)).max(i16::from(b) - i16::from(b_scale));
        let precision = u8::try_from(whole + i16::from(scale)).ok()?;
        (precision <= digits_max).then_some((precision, scale))
    };
    match (a, b) {
        (&DataType::Decimal128(a, a_scale), &DataType::Decimal128(b, b_scale)) => {
            let (precision, scale) = digits((a, a_scale), (b, b_scale), 38)?;
            Some(DataType::Decimal128(precision, scale))
        }
        (&DataType::Decimal256(a, a_scale), &DataType::Decimal256(b, b_scale)) => {
            let (precision, scale) = digits((a, a_scale), (b, b_scale), 76)?;
            Some(DataType::Decimal256(precision, scale))
        }
        _ => None,
    }
}

fn float_bits(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Float16 => Some(16),
        DataType::Float32 => Some(32),
        DataType::Float64 => Some(64),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Integer {
    is_signed: bool,
    bits: u8,
}

impl Integer {
    fn of(data_type: &DataType) -> Option<Self> {
        let (is_signed, bits) = match data_type {
            DataType::Int8 => (true, 8),
            DataType::Int16 => (true, 16),
            DataType::Int32 => (true, 32),
            DataType::Int64 => (true, 64),
            DataType::UInt8 => (false, 8),
            DataType::UInt16 => (false, 16),
            DataType::UInt32 => (false, 32),
            DataType::UInt64 => (false, 64),
            _ => return None,
        };
        Some(Self { is_signed, bits })
    }

    fn common(self, other: Self) -> Self {
        let is_signed = self.is_signed || other.is_signed;
        // A sign takes a bit, so an unsigned integer needs the next width.
        let bits = |integer: Self| match is_signed && !integer.is_signed {
            true => 2 * integer.bits,
            false => integer.bits,
        };
        Self { is_signed, bits: bits(self).max(bits(other)) }
    }

    fn data_type(self) -> Option<DataType> {
        Some(match (self.is_signed, self.bits) {
            (true, 8) => DataType::Int8,
            (true, 16) => DataType::Int16,
            (true, 32) => DataType::Int32,
            (true, 64) => DataType::Int64,
            (false, 8) => DataType::UInt8,
            (false, 16) => DataType::UInt16,
            (false, 32) => DataType::UInt32,
            (false, 64) => DataType::UInt64,
            _ => return None,
        })
    }
}

/// Whether each value of one type is a value of the other, in the same order, so that bounds stay bounds.
#[must_use]
pub fn widens(from: &DataType, to: &DataType) -> bool {
    common_type(from, to).as_ref() == Some(to)
}

/// Whether arrays of one type convert to another. Single values may still not fit.
pub(super) fn can_adapt(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Struct(from), DataType::Struct(to)) => {
            to.iter().all(|field| match from.find(field.name()) {
                Some((_, stored)) => can_adapt(stored.data_type(), field.data_type()),
                None => field.is_nullable(),
            })
        }
        (DataType::List(from), DataType::List(to))
        | (DataType::LargeList(from), DataType::LargeList(to)) => {
            can_adapt(from.data_type(), to.data_type())
        }
        _ => from == to || can_cast_types(from, to),
    }
}

/// Converts an array to another type. Fields of structs are found by name; missing ones are null.
///
/// # Errors
/// If a value does not fit.
pub(super) fn adapt(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), to) {
        (DataType::Struct(_), DataType::Struct(fields)) => adapt_struct(array.as_struct(), fields),
        (DataType::List(_), DataType::List(field)) => adapt_list(array.as_list::<i32>(), field),
        (DataType::LargeList(_), DataType::LargeList(field)) => {
            adapt_list(array.as_list::<i64>(), field)
        }
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options)
        }
    }
}

fn adapt_struct(array: &StructArray, fields: &Fields) -> Result<ArrayRef, ArrowError> {
    let child = |field: &Arc<Field>| match array.column_by_name(field.name()) {
        Some(child) => adapt(child, field.data_type()),
        None => Ok(new_null_array(field.data_type(), array.len())),
    };
    let children = fields.iter().map(child).collect::<Result<Vec<_>, _>>()?;
    let nulls = array.nulls().cloned();
    let adapted = StructArray::try_new_with_length(fields.clone(), children, nulls, array.len())?;
    Ok(Arc::new(adapted))
}

fn adapt_list<O: OffsetSizeTrait>(
    array: &GenericListArray<O>,
    field: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let values = adapt(array.values(), field.data_type())?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
}

/// The array with the names of nested fields of a type that differs from its own in these only. Nothing is copied.
///
/// # Panics
/// If the types differ otherwise.
pub(super) fn rename(array: &ArrayRef, to: &DataType) -> ArrayRef {
    if array.data_type() == to {
        return Arc::clone(array);
    }
    let nulls = || array.nulls().cloned();
    match to {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| rename(column, field.data_type()));
            let (columns, rows) = (columns.collect(), array.len());
            let renamed = StructArray::try_new_with_length(fields.clone(), columns, nulls(), rows);
            Arc::new(renamed.expect("only names differ"))
        }
        DataType::List(field) => rename_list(array.as_list::<i32>(), field),
        DataType::LargeList(field) => rename_list(array.as_list::<i64>(), field),
        DataType::Map(field, is_sorted) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = rename(&entries, field.data_type()).as_struct().clone();
            let (field, offsets) = (Arc::clone(field), map.offsets().clone());
            Arc::new(MapArray::new(field, offsets, entries, nulls(), *is_sorted))
        }
        other => panic!("{} has no nested names to be {other}", array.data_type()),
    }
}

fn rename_list<O: OffsetSizeTrait>(array: &GenericListArray<O>, field: &FieldRef) -> ArrayRef {
    let values = rename(array.values(), field.data_type());
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    Arc::new(GenericListArray::new(Arc::clone(field), offsets, values, nulls))
}

#[cfg(test)]
mod tests {
    use super::DataType::*;
    use super::*;

    #[test]
    fn numbers_widen_only_where_nothing_is_lost() {
        for (a, b, common) in [
            (Int32, Int64, Some(Int64)),
            (Int8, UInt8, Some(Int16)),
            (UInt32, Int8, Some(Int64)),
            (UInt16, UInt64, Some(UInt64)),
            (UInt64, Int64, None),
            (Float32, Float64, Some(Float64)),
            (Float16, Float32, Some(Float32)),
            (Int64, Float64, None),
            (Int32, Utf8View, None),
            (Date32, Timestamp(arrow_schema::TimeUnit::Second, None), None),
            (Decimal128(10, 2), Decimal128(12, 1), Some(Decimal128(13, 2))),
            (Decimal128(38, 0), Decimal128(10, 2), None),
            (Null, Utf8View, Some(Utf8View)),
        ] {
            assert_eq!(common_type(&a, &b), common, "{a} and {b}");
            assert_eq!(common_type(&b, &a), common, "{b} and {a}");
        }
    }

    #[test]
    fn only_wider_types_keep_the_order_of_bounds() {
        assert!(widens(&Int32, &Int64));
        assert!(!widens(&Int64, &Int32));
        assert!(!widens(&Int32, &Utf8View));
    }
}
