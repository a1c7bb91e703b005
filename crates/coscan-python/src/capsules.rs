//! Arrow data as capsules of its C interface, as other Python packages exchange it.

use std::ffi::CStr;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::from_arrow;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

pub(crate) fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema).map_err(from_arrow)?, SCHEMA)
}

pub(crate) type ArrayCapsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

pub(crate) fn batch<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<ArrayCapsules<'py>> {
    let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
        to_ffi(&StructArray::from(batch.clone()).to_data()).map_err(from_arrow)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
}

pub(crate) fn stream(
    py: Python<'_>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

/// The schema of an object that exports it.
///
/// # Errors
/// If it exports none.
pub(crate) fn read_schema(data: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let capsule = data.call_method0("__arrow_c_schema__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(SCHEMA))?;
    #[expect(unsafe_code, reason = "a capsule of this name has a schema")]
    let schema = unsafe { pointer.cast::<FFI_ArrowSchema>().as_ref() };
    Ok(Arc::new(Schema::try_from(schema).map_err(from_arrow)?))
}

/// The rows of an object that exports them.
///
/// # Errors
/// If it exports none.
pub(crate) fn reader(data: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let Ok(export) = data.getattr("__arrow_c_stream__") else {
        let kind = data.get_type();
        return Err(PyTypeError::new_err(format!(
            "a table is a path, a pattern, a URL, a list of these, or data with `__arrow_c_stream__` (pyarrow, polars, pandas 2.2 …), not {kind}"
        )));
    };
    let capsule = export.call0()?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    #[expect(
        unsafe_code,
        reason = "a capsule of this name has a stream, which the reader takes out of it"
    )]
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr().cast()) };
    reader.map_err(from_arrow)
}
