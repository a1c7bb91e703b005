//! Values of single cells, which changes consist of.

use std::sync::Arc;

use arrow::array::ArrayData;
use arrow::compute::concat;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The widest value that is kept inline, in bytes.
pub(super) const INLINE_BYTES: usize = 16;

/// The counters beside bytes that are shared.
const COUNTERS_BYTES: usize = 16;

/// About the bytes of an array of one beside those of its value.
const OTHER_BYTES: usize = 256;

/// The value of one cell. The type is that of its column.
#[derive(Clone, Debug)]
pub enum Value {
    /// NULL.
    Null,
    /// A value of a fixed width of at most 16 bytes, or a truth value, in the machine's order of bytes. All other bytes are
    /// 0.
    Fixed([u8; INLINE_BYTES]),
    /// A string or binary.
    Bytes(Arc<[u8]>),
    /// A value of any other type, as an array of one.
    Other(ArrayRef),
}

impl Value {
    /// The value of a row of an array. [`ColumnValues`] gives those of many rows faster.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn of(array: &ArrayRef, row: usize) -> Self {
        ColumnValues::new(array).get(row)
    }

    /// The memory beside the value itself, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Fixed(_) => 0,
            Self::Bytes(bytes) => bytes.len() + COUNTERS_BYTES,
            Self::Other(array) => array.get_array_memory_size(),
        }
    }

    /// Whether it is a value of a column of this type.
    #[must_use]
    pub fn fits(&self, data_type: &DataType) -> bool {
        match (self, Kind::of(data_type)) {
            (Self::Null, _) | (Self::Fixed(_), Kind::Boolean | Kind::Fixed(_)) => true,
            (Self::Bytes(bytes), Kind::Bytes) => {
                let is_text =
                    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
                !is_text || std::str::from_utf8(bytes).is_ok()
            }
            (Self::Other(array), Kind::Other) => array.data_type() == data_type && array.len() == 1,
            _ => false,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// The values of the rows of an array.
#[derive(Clone, Debug)]
pub struct ColumnValues {
    array: ArrayRef,
    data: ArrayData,
}

impl ColumnValues {
    /// The values of an array.
    #[must_use]
    pub fn new(array: &ArrayRef) -> Self {
        Self { array: Arc::clone(array), data: array.to_data() }
    }

    /// The memory of the values beside the values themselves, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let rows = 0..self.array.len();
        match Kind::of(self.array.data_type()) {
            Kind::Boolean | Kind::Fixed(_) => 0,
            Kind::Bytes => {
                let rows = rows.filter(|row| self.array.is_valid(*row));
                rows.map(|row| bytes_of(&*self.array, row).len() + COUNTERS_BYTES).sum()
            }
            Kind::Other => rows.len() * OTHER_BYTES + self.array.get_array_memory_size(),
        }
    }

    /// The value of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn get(&self, row: usize) -> Value {
        let array = &*self.array;
        assert!(row < array.len(), "row {row} of {} exists", array.len());
        if array.is_null(row) || array.data_type() == &DataType::Null {
            return Value::Null;
        }
        match Kind::of(array.data_type()) {
            Kind::Boolean => {
                let mut bytes = [0; INLINE_BYTES];
                bytes[0] = u8::from(array.as_boolean().value(row));
                Value::Fixed(bytes)
            }
            Kind::Fixed(width) => {
                let start = (self.data.offset() + row) * width;
                let mut bytes = [0; INLINE_BYTES];
                bytes[..width].copy_from_slice(&self.data.buffers()[0][start..start + width]);
                Value::Fixed(bytes)
            }
            Kind::Bytes => Value::Bytes(bytes_of(array, row).into()),
            // A slice would keep the whole array in memory.
            Kind::Other => {
                let value = array.slice(row, 1);
                Value::Other(concat(&[&*value]).unwrap_or(value))
            }
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Fixed(a), Self::Fixed(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => a == b,
            _ => false,
        }
    }
}

/// The kinds of types that are handled alike.
pub(super) enum Kind {
    Boolean,
    /// Values of this many bytes.
    Fixed(usize),
    Bytes,
    Other,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView => Self::Bytes,
            other => match other.primitive_width() {
                Some(width) if width <= INLINE_BYTES => Self::Fixed(width),
                _ => Self::Other,
            },
        }
    }
}

fn bytes_of(array: &dyn Array, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        _ => array.as_binary_view().value(row),
    }
}
