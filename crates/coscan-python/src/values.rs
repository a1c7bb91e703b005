//! Rows as Python's own values.

use arrow::array::*;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::*;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::errors::{DataError, from_arrow, outside_of_python};
use crate::texts::texts;

/// Python's types of dates, times and decimals.
struct Types<'py> {
    date: Bound<'py, PyAny>,
    /// 1970-01-01 without a time zone.
    epoch: Bound<'py, PyAny>,
    timedelta: Bound<'py, PyAny>,
    timezone: Bound<'py, PyAny>,
    zone_info: Bound<'py, PyAny>,
    decimal: Bound<'py, PyAny>,
}

impl<'py> Types<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let datetime = py.import("datetime")?;
        Ok(Self {
            date: datetime.getattr("date")?,
            epoch: datetime.getattr("datetime")?.call1((1970, 1, 1))?,
            timedelta: datetime.getattr("timedelta")?,
            timezone: datetime.getattr("timezone")?,
            zone_info: py.import("zoneinfo")?.getattr("ZoneInfo")?,
            decimal: py.import("decimal")?.getattr("Decimal")?,
        })
    }

    /// The time span of microseconds.
    fn span(&self, microseconds: i64) -> PyResult<Bound<'py, PyAny>> {
        self.timedelta.call1((0, 0, microseconds))
    }

    fn at(&self, microseconds: i64) -> PyResult<Bound<'py, PyAny>> {
        self.epoch.call_method1("__add__", (self.span(microseconds)?,))
    }

    /// The time zone of this name, or of an offset such as `+05:30`.
    fn zone(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some((sign, offset)) = name.split_at_checked(1).filter(|(sign, _)| "+-".contains(sign))
        else {
            return self.zone_info.call1((name,));
        };
        let (hours, minutes) = offset.split_once(':').unwrap_or(match offset.len() {
            4 => offset.split_at(2),
            _ => (offset, "0"),
        });
        let parsed = hours.parse::<i64>().ok().zip(minutes.parse::<i64>().ok());
        let Some((hours, minutes)) = parsed else {
            return Err(DataError::new_err(format!("{name} is no time zone")));
        };
        let seconds = (hours * 60 + minutes) * 60 * if sign == "-" { -1 } else { 1 };
        self.timezone.call1((self.span(seconds * 1_000_000)?,))
    }
}

/// The rows of a batch.
pub(crate) fn rows<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let types = Types::new(py)?;
    let columns = batch.columns().iter().map(|column| values(py, column, &types));
    let columns: PyResult<Vec<Vec<Bound<'py, PyAny>>>> = columns.collect();
    let columns = columns.map_err(|error| outside_of_python(py, error))?;
    let row = |row: usize| PyTuple::new(py, columns.iter().map(|column| &column[row]));
    (0..batch.num_rows()).map(row).collect()
}

/// Rows of several batches: at most `rows_max`, from `first` on.
pub(crate) fn rows_of<'py>(
    py: Python<'py>,
    batches: &[RecordBatch],
    first: usize,
    rows_max: usize,
) -> PyResult<Bound<'py, PyList>> {
    let (list, mut skipped) = (PyList::empty(py), first);
    for batch in batches {
        if list.len() == rows_max {
            break;
        }
        let from = skipped.min(batch.num_rows());
        skipped -= from;
        let count = (batch.num_rows() - from).min(rows_max - list.len());
        if count == 0 {
            continue;
        }
        for row in rows(py, &batch.slice(from, count))? {
            list.append(row)?;
        }
    }
    Ok(list)
}

/// The values of an array, NULL as `None`.
fn values<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    types: &Types<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    macro_rules! primitive {
        ($type:ty) => {
            array.as_primitive::<$type>().iter().map(|value| value.into_bound_py_any(py)).collect()
        };
    }
    let as_type = |to: &DataType| {
        let array = cast(array, to).map_err(from_arrow)?;
        values(py, &array, types)
    };
    match array.data_type() {
        DataType::Null => Ok(vec![py.None().into_bound(py); array.len()]),
        DataType::Boolean => {
            array.as_boolean().iter().map(|value| value.into_bound_py_any(py)).collect()
        }
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => as_type(&DataType::Int64),
        DataType::Float64 => primitive!(Float64Type),
        DataType::Float16 | DataType::Float32 => as_type(&DataType::Float64),
        DataType::Utf8View => {
            array.as_string_view().iter().map(|value| value.into_bound_py_any(py)).collect()
        }
        DataType::Utf8 | DataType::LargeUtf8 => as_type(&DataType::Utf8View),
        DataType::BinaryView => array
            .as_binary_view()
            .iter()
            .map(|value| value.map(|value| PyBytes::new(py, value)).into_bound_py_any(py))
            .collect(),
        DataType::Binary | DataType::LargeBinary => as_type(&DataType::BinaryView),
        DataType::FixedSizeBinary(_) => as_type(&DataType::Binary),
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => times(py, array, types),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let texts = cast(array, &DataType::Utf8View).map_err(from_arrow)?;
            let decimal = |text: Option<&str>| match text {
                Some(text) => types.decimal.call1((text,)),
                None => Ok(py.None().into_bound(py)),
            };
            texts.as_string_view().iter().map(decimal).collect()
        }
        DataType::List(_) => lists(py, array.as_list::<i32>().iter(), types),
        DataType::LargeList(_) => lists(py, array.as_list::<i64>().iter(), types),
        DataType::FixedSizeList(..) => lists(py, array.as_fixed_size_list().iter(), types),
        DataType::ListView(field) => as_type(&DataType::List(field.clone())),
        DataType::LargeListView(field) => as_type(&DataType::LargeList(field.clone())),
        DataType::Struct(_) => structs(py, array.as_struct(), types),
        DataType::Map(..) => maps(py, array.as_map(), types),
        DataType::Dictionary(_, to) => as_type(to),
        DataType::RunEndEncoded(_, field) => as_type(field.data_type()),
        // Months have no type in Python.
        DataType::Interval(_) | DataType::Union(..) => {
            texts(array)?.into_iter().map(|text| text.into_bound_py_any(py)).collect()
        }
    }
}

/// An array of another type. What the type cannot hold is an error.
fn exactly(array: &ArrayRef, to: &DataType) -> PyResult<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options).map_err(from_arrow)
}

/// The values of an array of dates, times or time spans.
fn times<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    types: &Types<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let times = |make: &dyn Fn(i64) -> PyResult<Bound<'py, PyAny>>, array: &ArrayRef| {
        let numbers = array.as_primitive::<Int64Type>().iter();
        numbers
            .map(|number| number.map_or_else(|| Ok(py.None().into_bound(py)), make))
            .collect::<PyResult<Vec<_>>>()
    };
    // As whole numbers of this type.
    let numbers = |through: DataType| {
        let array = exactly(array, &through)?;
        let array = match through {
            DataType::Date32 => exactly(&array, &DataType::Int32)?,
            _ => array,
        };
        exactly(&array, &DataType::Int64)
    };
    match array.data_type() {
        DataType::Date32 | DataType::Date64 => {
            let days = numbers(DataType::Date32)?;
            // Day 1 is 0001-01-01.
            let date = |day: i64| types.date.call_method1("fromordinal", (day + 719_163,));
            times(&date, &days)
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let microseconds = numbers(DataType::Time64(TimeUnit::Microsecond))?;
            times(&|time| types.at(time)?.call_method0("time"), &microseconds)
        }
        DataType::Timestamp(_, zone) => {
            let unit = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            let zone = zone.as_ref().map(|zone| types.zone(zone)).transpose()?;
            let utc = types.timezone.getattr("utc")?;
            let time = |time: i64| match &zone {
                None => types.at(time),
                Some(zone) => {
                    let keywords = PyDict::new(py);
                    keywords.set_item("tzinfo", &utc)?;
                    let time = types.at(time)?.call_method("replace", (), Some(&keywords))?;
                    time.call_method1("astimezone", (zone,))
                }
            };
            times(&time, &numbers(unit)?)
        }
        DataType::Duration(_) => {
            let microseconds = numbers(DataType::Duration(TimeUnit::Microsecond))?;
            times(&|time| types.span(time), &microseconds)
        }
        other => Err(DataError::new_err(format!("{other} is no time"))),
    }
}

fn lists<'py>(
    py: Python<'py>,
    lists: impl Iterator<Item = Option<ArrayRef>>,
    types: &Types<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let list = |elements: Option<ArrayRef>| match elements {
        Some(elements) => Ok(PyList::new(py, values(py, &elements, types)?)?.into_any()),
        None => Ok(py.None().into_bound(py)),
    };
    lists.map(list).collect()
}

fn structs<'py>(
    py: Python<'py>,
    array: &StructArray,
    types: &Types<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let columns = array.columns().iter().map(|column| values(py, column, types));
    let columns: Vec<_> = columns.collect::<PyResult<_>>()?;
    let row = |row: usize| {
        if array.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        let fields = PyDict::new(py);
        for (name, column) in array.column_names().into_iter().zip(&columns) {
            fields.set_item(name, &column[row])?;
        }
        Ok(fields.into_any())
    };
    (0..array.len()).map(row).collect()
}

fn maps<'py>(
    py: Python<'py>,
    array: &MapArray,
    types: &Types<'py>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let row = |row: usize| {
        if array.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        let entries = array.value(row);
        let (keys, values) =
            (values(py, entries.column(0), types)?, values(py, entries.column(1), types)?);
        let map = PyDict::new(py);
        for (key, value) in keys.iter().zip(&values) {
            if key.hash().is_err() {
                // Keys that are lists or dicts: as pairs.
                let pairs = keys.into_iter().zip(values);
                return Ok(PyList::new(py, pairs.collect::<Vec<_>>())?.into_any());
            }
            map.set_item(key, value)?;
        }
        Ok(map.into_any())
    };
    (0..array.len()).map(row).collect()
}
