//! Python's values as parameters of statements.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{ParamValues, ScalarValue};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence, PyString};

use crate::errors::DataError;

/// The parameters in a list or tuple, or in a dict.
///
/// # Errors
/// If it is neither, or SQL has no type for a value.
pub(crate) fn all(given: &Bound<'_, PyAny>) -> PyResult<ParamValues> {
    if let Ok(named) = given.cast::<PyDict>() {
        let value = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            PyResult::Ok((name.extract::<String>()?, parameter(&value)?))
        };
        let named: Vec<_> = named.iter().map(value).collect::<PyResult<_>>()?;
        return Ok(ParamValues::from(named));
    }
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("parameters are a list, a tuple or a dict"));
    }
    let Ok(listed) = given.cast::<PySequence>() else {
        return Err(PyTypeError::new_err("parameters are a list, a tuple or a dict"));
    };
    let value = |value: PyResult<Bound<'_, PyAny>>| parameter(&value?);
    let listed: Vec<_> = listed.try_iter()?.map(value).collect::<PyResult<_>>()?;
    Ok(ParamValues::from(listed))
}

/// A parameter of a statement.
///
/// # Errors
/// If SQL has no type for the value.
fn parameter(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let kind = value.get_type().name()?.to_string();
    Ok(match kind.as_str() {
        "NoneType" => ScalarValue::Null,
        "bool" => ScalarValue::Boolean(Some(value.extract()?)),
        "int" => match value.extract::<i64>() {
            Ok(number) => ScalarValue::Int64(Some(number)),
            Err(_) => ScalarValue::UInt64(Some(value.extract()?)),
        },
        "float" => ScalarValue::Float64(Some(value.extract()?)),
        "str" => ScalarValue::Utf8View(Some(value.extract()?)),
        "bytes" => ScalarValue::BinaryView(Some(value.extract()?)),
        "date" => text(value, "isoformat", &DataType::Date32)?,
        "time" => text(value, "isoformat", &DataType::Time64(TimeUnit::Microsecond))?,
        "datetime" => {
            let is_local = value.getattr("tzinfo")?.is_none();
            let zone = (!is_local).then(|| "+00:00".into());
            text(value, "isoformat", &DataType::Timestamp(TimeUnit::Microsecond, zone))?
        }
        "Decimal" => {
            let text: String = value.call_method1("__format__", ("f",))?.extract()?;
            let digits = text.bytes().filter(u8::is_ascii_digit).count().max(1);
            let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            let (Ok(precision @ ..=38), Ok(scale)) = (u8::try_from(digits), i8::try_from(scale))
            else {
                return Err(DataError::new_err(format!("{text} has more than 38 digits")));
            };
            parsed(&text, &DataType::Decimal128(precision, scale))?
        }
        _ => {
            return Err(PyTypeError::new_err(format!(
                "a parameter is None, a bool, int, float, str, bytes, date, time, datetime or Decimal, not {kind}"
            )));
        }
    })
}

fn text(value: &Bound<'_, PyAny>, method: &str, to: &DataType) -> PyResult<ScalarValue> {
    parsed(&value.call_method0(method)?.extract::<String>()?, to)
}

fn parsed(text: &str, to: &DataType) -> PyResult<ScalarValue> {
    let parsed = ScalarValue::from(text).cast_to(to);
    parsed.map_err(|error| DataError::new_err(error.to_string()))
}
