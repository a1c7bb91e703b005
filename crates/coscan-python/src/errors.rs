//! Errors as exceptions, by what one can do next.

use std::error::Error as StdError;

use arrow::error::ArrowError;
use coscan_server::queries::{ErrorKind, QueryError};
use coscan_server::{query_error, sqlstate};
use datafusion::error::DataFusionError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOverflowError, PyValueError};
use pyo3::prelude::*;

create_exception!(coscan, Error, PyException, "Any error of coscan.");
create_exception!(coscan, SqlError, Error, "The statement is wrong: change it.");
create_exception!(coscan, DataError, Error, "A value or a file is wrong: change it.");
create_exception!(coscan, ResourceError, Error, "Memory is short: give more, or wait.");
create_exception!(coscan, StoreError, Error, "Files cannot be read or written: try again.");
create_exception!(coscan, Cancelled, Error, "The query was cancelled.");

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for (name, exception, state) in [
        ("Error", py.get_type::<Error>(), "XX000"),
        ("SqlError", py.get_type::<SqlError>(), "42000"),
        ("DataError", py.get_type::<DataError>(), "22000"),
        ("ResourceError", py.get_type::<ResourceError>(), "53000"),
        ("StoreError", py.get_type::<StoreError>(), "58030"),
        ("Cancelled", py.get_type::<Cancelled>(), "57014"),
    ] {
        // Exceptions of statements have their own.
        exception.setattr("sqlstate", state)?;
        module.add(name, exception)?;
    }
    Ok(())
}

/// The exception of a statement that has failed.
pub(crate) fn from_engine(error: DataFusionError) -> PyErr {
    from_query(&query_error(error))
}

/// The exception of a query that has failed.
pub(crate) fn from_query(error: &QueryError) -> PyErr {
    let text = error.text.clone();
    let exception = match error.kind {
        ErrorKind::Memory | ErrorKind::Busy | ErrorKind::Conflict => ResourceError::new_err(text),
        ErrorKind::Storage | ErrorKind::WorkerLost => StoreError::new_err(text),
        ErrorKind::DivisionByZero | ErrorKind::InvalidValue => DataError::new_err(text),
        ErrorKind::Cancelled | ErrorKind::TimedOut | ErrorKind::Stopping => {
            Cancelled::new_err(text)
        }
        ErrorKind::Internal => Error::new_err(text),
        _ => SqlError::new_err(text),
    };
    with_state(exception, sqlstate(error.kind))
}

/// The exception of an error of Arrow.
pub(crate) fn from_arrow(error: ArrowError) -> PyErr {
    DataError::new_err(error.to_string())
}

/// The exception of an engine's error that has passed through Arrow.
pub(crate) fn from_any(error: Box<dyn StdError + Send + Sync>) -> PyErr {
    match error.downcast::<DataFusionError>() {
        Ok(error) => from_engine(*error),
        Err(error) => Error::new_err(error.to_string()),
    }
}

/// The error of a query that its own process has cancelled.
pub(crate) fn cancelled_query() -> QueryError {
    QueryError::new(ErrorKind::Cancelled, "the query was cancelled")
}

/// The error of a query whose task is gone.
pub(crate) fn lost_query() -> QueryError {
    QueryError::new(
        ErrorKind::Cancelled,
        "the query was cut off: the interpreter exits, or a thread of the query has panicked",
    )
}

/// The error of a value that Python's types do not have, such as a year after 9999.
pub(crate) fn outside_of_python(py: Python<'_>, error: PyErr) -> PyErr {
    let is_value =
        error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py);
    if !is_value {
        return error;
    }
    let text =
        format!("Python has no such value: {}; cast it to text, or use arrow()", error.value(py));
    let is_wrong = DataError::new_err(text);
    is_wrong.set_cause(py, Some(error));
    is_wrong
}

/// The exception of a statement or call that is wrong.
pub(crate) fn wrong(kind: ErrorKind, text: impl Into<String>) -> PyErr {
    from_query(&QueryError::new(kind, text))
}

fn with_state(exception: PyErr, state: &str) -> PyErr {
    Python::attach(|py| {
        // An exception without it is better than none.
        let _ = exception.value(py).setattr("sqlstate", state);
    });
    exception
}
