//! `pg_size_pretty`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};

pub(super) fn pg_size_pretty() -> ScalarUDF {
    let (bytes, text, immutable) = (DataType::Int64, DataType::Utf8, Volatility::Immutable);
    create_udf("pg_size_pretty", vec![bytes], text, immutable, Arc::new(pretty_sizes))
}

fn pretty_sizes(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let sizes = arrays[0].as_primitive::<Int64Type>();
    let texts: StringArray = sizes.iter().map(|size| size.map(pretty_size)).collect();
    Ok(ColumnarValue::Array(Arc::new(texts) as ArrayRef))
}

/// Formats bytes as PostgreSQL does. At most 10,239 bytes are exact. More are rounded to the first unit that gives less
/// than 10,240.
fn pretty_size(bytes: i64) -> String {
    if bytes.unsigned_abs() < 10_240 {
        return format!("{bytes} bytes");
    }
    let mut halves = bytes / 512;
    let rounded = |halves: i64| (halves + halves.signum()) / 2;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves.unsigned_abs() < 20_479 {
            return format!("{} {unit}", rounded(halves));
        }
        halves /= 1024;
    }
    format!("{} PB", rounded(halves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_in_postgresql() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (-10_752, "-11 kB"),
            (10_751, "10 kB"),
            (10_752, "11 kB"),
            (10_485_247, "10239 kB"),
            (10_485_248, "10 MB"),
            (1 << 30, "1024 MB"),
            (i64::MAX, "8192 PB"),
        ] {
            assert_eq!(pretty_size(bytes), text);
        }
    }
}
