//! Columns of rows. Properties that all their values have in common are computed once.

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, StringArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Int16Type, Int32Type, Int64Type};
use bytes::{BufMut, BytesMut};
use pgwire::api::results::{FieldFormat, FieldInfo};
use postgres_types::{Kind, Type};

use super::times;

/// A column of rows, or the elements of an array.
pub(in crate::postgres) struct Column<'a> {
    pub(super) values: &'a ArrayRef,
    pub(super) field: &'a Field,
    pub(super) described: &'a FieldInfo,
    /// The fields of an array's elements, or of a record's columns.
    pub(super) parts: Vec<FieldInfo>,
    pub(super) zone: Option<Tz>,
    pub(super) kind: ColumnKind<'a>,
}

/// The way in which the values of a column are encoded.
pub(super) enum ColumnKind<'a> {
    /// In the usual form of their type, which most values of most results have.
    Plain(Plain<'a>),
    Times,
    Others,
}

/// Integers and texts.
pub(super) enum Plain<'a> {
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    Text(&'a StringArray),
    TextView(&'a StringViewArray),
}

impl<'a> Column<'a> {
    pub(in crate::postgres) fn new(
        values: &'a ArrayRef,
        field: &'a Field,
        described: &'a FieldInfo,
    ) -> Self {
        let part = |name: &str, of: &Type| {
            let part = FieldInfo::new(name.to_owned(), None, None, of.clone(), described.format());
            part.with_format_options(described.format_options().clone())
        };
        let parts = match described.datatype().kind() {
            Kind::Array(of) => vec![part(described.name(), of)],
            Kind::Composite(columns) => {
                columns.iter().map(|column| part(column.name(), column.type_())).collect()
            }
            _ => Vec::new(),
        };
        let kind = match Plain::of(values, described.datatype()) {
            Some(plain) => ColumnKind::Plain(plain),
            None if values.data_type().is_temporal() => ColumnKind::Times,
            None => ColumnKind::Others,
        };
        Self { values, field, described, parts, zone: times::zone(values.data_type()), kind }
    }
}

impl<'a> Plain<'a> {
    /// `None` for other types, and for values that are described as another type.
    fn of(values: &'a ArrayRef, described: &Type) -> Option<Self> {
        let is_text = [Type::TEXT, Type::VARCHAR].contains(described);
        Some(match values.data_type() {
            DataType::Int16 if *described == Type::INT2 => Self::Int16(values.as_primitive()),
            DataType::Int32 if *described == Type::INT4 => Self::Int32(values.as_primitive()),
            DataType::Int64 if *described == Type::INT8 => Self::Int64(values.as_primitive()),
            DataType::Utf8 if is_text => Self::Text(values.as_string()),
            DataType::Utf8View if is_text => Self::TextView(values.as_string_view()),
            _ => return None,
        })
    }

    /// Adds a value other than NULL, after space for its length.
    pub(super) fn add(&self, row: usize, format: FieldFormat, to: &mut BytesMut) {
        let mut text = itoa::Buffer::new();
        match (self, format) {
            (Self::Text(values), _) => to.put_slice(values.value(row).as_bytes()),
            (Self::TextView(values), _) => to.put_slice(values.value(row).as_bytes()),
            (Self::Int16(values), FieldFormat::Binary) => to.put_i16(values.value(row)),
            (Self::Int32(values), FieldFormat::Binary) => to.put_i32(values.value(row)),
            (Self::Int64(values), FieldFormat::Binary) => to.put_i64(values.value(row)),
            (Self::Int16(values), FieldFormat::Text) => {
                to.put_slice(text.format(values.value(row)).as_bytes());
            }
            (Self::Int32(values), FieldFormat::Text) => {
                to.put_slice(text.format(values.value(row)).as_bytes());
            }
            (Self::Int64(values), FieldFormat::Text) => {
                to.put_slice(text.format(values.value(row)).as_bytes());
            }
        }
    }
}
