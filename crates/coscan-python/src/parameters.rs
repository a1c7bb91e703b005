//! Python's values as parameters of statements.

use std::borrow::Cow;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence, PyString};

use crate::errors::{DataError, SqlError};

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

/// A statement with `$1`, `$2` … instead of each `?`.
///
/// # Errors
/// If it has parameters of both kinds.
pub(crate) fn numbered(sql: &str) -> PyResult<Cow<'_, str>> {
    // The engine says what is wrong with a statement without tokens.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return Ok(Cow::Borrowed(sql));
    };
    let mut marks = Vec::new();
    let mut has_others = false;
    for token in tokens {
        match token.token {
            Token::Placeholder(name) if name == "?" => marks.push(token.span.start),
            Token::Placeholder(_) => has_others = true,
            _ => {}
        }
    }
    if marks.is_empty() {
        return Ok(Cow::Borrowed(sql));
    }
    if has_others {
        return Err(SqlError::new_err("parameters are either ?, or $1, $2 …, or $name"));
    }
    let (mut text, mut number) = (String::with_capacity(sql.len() + marks.len()), 0);
    let (mut line, mut column) = (1, 1);
    for character in sql.chars() {
        match marks.get(number) {
            Some(mark) if (mark.line, mark.column) == (line, column) => {
                number += 1;
                text += &format!("${number}");
            }
            _ => text.push(character),
        }
        (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    Ok(Cow::Owned(text))
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
