//! Python's values as parameters of statements.

use std::borrow::Cow;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{ParamValues, ScalarValue, plan_err};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyMapping, PySequence, PyString, PyType};

use crate::errors::{DataError, SqlError};

/// The parameters in a list, a tuple or another sequence, or in a dict or another mapping.
///
/// # Errors
/// If it is neither, or SQL has no type for a value.
pub(crate) fn all(given: &Bound<'_, PyAny>) -> PyResult<ParamValues> {
    if let Ok(named) = given.cast::<PyMapping>() {
        let value = |item: Bound<'_, PyAny>| {
            let (name, value) = item.extract::<(String, Bound<'_, PyAny>)>()?;
            PyResult::Ok((name, parameter(&value)?))
        };
        let named: Vec<_> = named.items()?.iter().map(value).collect::<PyResult<_>>()?;
        return Ok(ParamValues::from(named));
    }
    let is_text = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
    match given.cast::<PySequence>() {
        Ok(listed) if !is_text => {
            let value = |value: PyResult<Bound<'_, PyAny>>| parameter(&value?);
            let listed: Vec<_> = listed.try_iter()?.map(value).collect::<PyResult<_>>()?;
            Ok(ParamValues::from(listed))
        }
        _ => Err(PyTypeError::new_err("parameters are a list, a tuple or a dict")),
    }
}

/// Refuses parameters of statements other than queries and changes of tables.
///
/// # Errors
/// If there are some.
pub(crate) fn check_kind(
    given: &ParamValues,
    context: &SessionContext,
    text: &str,
) -> EngineResult<()> {
    let is_empty = match given {
        ParamValues::List(values) => values.is_empty(),
        ParamValues::Map(values) => values.is_empty(),
    };
    if is_empty {
        return Ok(());
    }
    let state = context.state();
    let statement = state.sql_to_statement(text, &state.config_options().sql_parser.dialect);
    let takes_parameters = match statement {
        Ok(DFStatement::Statement(statement)) => matches!(
            *statement,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::CreateTable(_)
                | Statement::CreateView(_)
        ),
        Ok(DFStatement::Explain(_) | DFStatement::CopyTo(_)) => true,
        Ok(_) => false,
        // Other parsers know more forms of queries.
        Err(_) => true,
    };
    match takes_parameters {
        true => Ok(()),
        false => plan_err!("the statement takes no parameters: write the values into it"),
    }
}

/// Refuses parameters that a statement does not have, and statements whose parameters were forgotten.
///
/// # Errors
/// If there are some.
pub(crate) fn check(given: Option<&ParamValues>, plan: &LogicalPlan) -> EngineResult<()> {
    let known = plan.get_parameter_names()?;
    match given {
        None if known.is_empty() => {}
        None => {
            let mut names: Vec<_> = known.into_iter().collect();
            names.sort();
            return plan_err!("no values were given for the parameters {}", names.join(", "));
        }
        Some(ParamValues::List(values)) => {
            let is_named =
                |name: &&String| !name[1..].starts_with(|first: char| first.is_numeric());
            if let Some(name) = known.iter().find(is_named) {
                return plan_err!("the statement has the parameter {name}: give a dict of names");
            }
            let wanted = known.iter().filter_map(|name| name.strip_prefix('$')?.parse().ok());
            let wanted: usize = wanted.max().unwrap_or_default();
            if values.len() > wanted {
                return plan_err!(
                    "{} parameters were given, and the statement has {wanted}",
                    values.len()
                );
            }
        }
        Some(ParamValues::Map(_)) if known.contains("?") => {
            return plan_err!("`?` takes a list of values, not a dict");
        }
        Some(ParamValues::Map(values)) => {
            let unknown = values.keys().find(|name| !known.contains(&format!("${name}")));
            if let Some(name) = unknown {
                return plan_err!("the statement has no parameter ${name}");
            }
        }
    }
    Ok(())
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
    let py = value.py();
    let is = |class: &PyOnceLock<Py<PyType>>, module, name| {
        value.is_instance(class.import(py, module, name)?)
    };
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    // A bool is an int, too, and a datetime a date.
    if value.is_instance_of::<PyBool>() {
        return Ok(ScalarValue::Boolean(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        if let Ok(number) = value.extract::<i64>() {
            return Ok(ScalarValue::Int64(Some(number)));
        }
        let too_long = |_| DataError::new_err(format!("{value} has more than 64 bits"));
        return Ok(ScalarValue::UInt64(Some(value.extract().map_err(too_long)?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ScalarValue::Float64(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(ScalarValue::Utf8View(Some(value.extract()?)));
    }
    if value.is_instance_of::<PyBytes>() {
        return Ok(ScalarValue::BinaryView(Some(value.extract()?)));
    }
    if is(&DATETIME, "datetime", "datetime")? {
        let zone = (!value.getattr("tzinfo")?.is_none()).then(|| "+00:00".into());
        return text(value, "isoformat", &DataType::Timestamp(TimeUnit::Microsecond, zone));
    }
    if is(&DATE, "datetime", "date")? {
        return text(value, "isoformat", &DataType::Date32);
    }
    if is(&TIME, "datetime", "time")? {
        return text(value, "isoformat", &DataType::Time64(TimeUnit::Microsecond));
    }
    if is(&DECIMAL, "decimal", "Decimal")? {
        return decimal(value);
    }
    let kind = value.get_type();
    if kind.module()?.to_str()? == "numpy" && value.hasattr("item")? {
        let item = value.call_method0("item")?;
        if !item.get_type().is(&kind) {
            return parameter(&item);
        }
    }
    Err(PyTypeError::new_err(format!(
        "a parameter is None, a bool, int, float, str, bytes, date, time, datetime or Decimal, not {}",
        kind.name()?
    )))
}

static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    let text: String = value.call_method1("__format__", ("f",))?.extract()?;
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(DataError::new_err(format!("SQL has no Decimal {text}: give a float")));
    }
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let (Ok(precision @ ..=38), Ok(scale)) = (u8::try_from(digits), i8::try_from(scale)) else {
        return Err(DataError::new_err("a Decimal has at most 38 digits"));
    };
    parsed(&text, &DataType::Decimal128(precision, scale))
}

fn text(value: &Bound<'_, PyAny>, method: &str, to: &DataType) -> PyResult<ScalarValue> {
    parsed(&value.call_method0(method)?.extract::<String>()?, to)
}

fn parsed(text: &str, to: &DataType) -> PyResult<ScalarValue> {
    let parsed = ScalarValue::from(text).cast_to(to);
    parsed.map_err(|error| DataError::new_err(error.to_string()))
}
