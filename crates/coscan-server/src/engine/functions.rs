//! Functions that PostgreSQL clients call, in addition to those of datafusion-pg-catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};

use crate::engine::constant_settings::SERVER_VERSION;
use crate::queries::Queries;
use crate::system_tables::cancel_function;
use crate::users::User;

/// Those that are the same for all users.
pub(super) fn of_all() -> Vec<ScalarUDF> {
    use DataType::{Int32, Int64, Utf8};
    let no_text = |name: &str, arguments: Vec<DataType>| constant(name, arguments, None);
    vec![
        constant("version", vec![], Some(format!("PostgreSQL {SERVER_VERSION}"))),
        no_text("obj_description", vec![Int32, Utf8]),
        no_text("shobj_description", vec![Int32, Utf8]),
        no_text("col_description", vec![Int32, Int32]),
        no_text("pg_get_function_result", vec![Int32]),
        no_text("pg_get_function_arguments", vec![Int32]),
        is_visible("pg_function_is_visible"),
        is_visible("pg_type_is_visible"),
        is_visible("pg_operator_is_visible"),
        value("pg_table_size", vec![Int32], ScalarValue::Int64(None)),
        create_udf(
            "pg_size_pretty",
            vec![Int64],
            Utf8,
            Volatility::Immutable,
            Arc::new(pretty_sizes),
        ),
    ]
}

/// Those that depend on the user.
pub(super) fn of_user(user: &Arc<User>, queries: &Arc<Queries>) -> [ScalarUDF; 2] {
    // `current_user` is taken for a call of it, too.
    let name = constant("session_user", vec![], Some(user.name.clone()));
    [name, cancel_function(queries, user)]
}

/// What is listed can be named without its schema.
fn is_visible(name: &str) -> ScalarUDF {
    value(name, vec![DataType::Int32], ScalarValue::Boolean(Some(true)))
}

/// A function that returns the same text for all arguments.
fn constant(name: &str, arguments: Vec<DataType>, text: Option<String>) -> ScalarUDF {
    value(name, arguments, ScalarValue::Utf8(text))
}

fn value(name: &str, arguments: Vec<DataType>, value: ScalarValue) -> ScalarUDF {
    let data_type = value.data_type();
    let value = ColumnarValue::Scalar(value);
    let call = Arc::new(move |_: &[ColumnarValue]| Ok(value.clone()));
    create_udf(name, arguments, data_type, Volatility::Stable, call)
}

fn pretty_sizes(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let arrays = ColumnarValue::values_to_arrays(arguments)?;
    let sizes = arrays[0].as_primitive::<Int64Type>();
    let texts: StringArray = sizes.iter().map(|size| size.map(pretty_size)).collect();
    Ok(ColumnarValue::Array(Arc::new(texts) as ArrayRef))
}

/// As PostgreSQL shows bytes.
fn pretty_size(bytes: i64) -> String {
    let mut size = bytes;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if size.unsigned_abs() < 10_240 {
            return format!("{size} {unit}");
        }
        size /= 1024;
    }
    format!("{size} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_in_postgresql() {
        for (bytes, text) in
            [(0, "0 bytes"), (10_239, "10239 bytes"), (10_240, "10 kB"), (1 << 30, "1024 MB")]
        {
            assert_eq!(pretty_size(bytes), text);
        }
    }
}
