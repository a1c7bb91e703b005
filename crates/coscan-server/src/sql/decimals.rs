//! Types of decimals.

use arrow::datatypes::DataType;

/// The maximum number of digits before the point, and the digits after it. `None` for other types.
pub(crate) fn decimal_digits(data_type: &DataType) -> Option<(i16, i8)> {
    match *data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            Some((i16::from(precision) - i16::from(scale), scale))
        }
        _ => None,
    }
}
