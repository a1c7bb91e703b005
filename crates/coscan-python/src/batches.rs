//! The rows of a result, batch by batch.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use arrow::array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::capsules::{self, ArrayCapsules};
use crate::process::{OfProcess, lock};
use crate::stream::Rows;
use crate::values;

/// The batches of a result, each once.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Batches(Mutex<Source>);

enum Source {
    Kept(std::vec::IntoIter<RecordBatch>),
    Running(Arc<OfProcess<Rows>>),
}

impl Batches {
    /// Those of a result in memory.
    pub(crate) fn kept(batches: Vec<RecordBatch>) -> Self {
        Self(Mutex::new(Source::Kept(batches.into_iter())))
    }

    /// Those of a query that runs.
    pub(crate) fn running(rows: Rows) -> Self {
        Self(Mutex::new(Source::Running(Arc::new(OfProcess::new(rows)))))
    }
}

#[pymethods]
impl Batches {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let rows = match &mut *lock(&self.0) {
            Source::Kept(batches) => return Ok(batches.next().map(Batch)),
            Source::Running(rows) => Arc::clone(rows),
        };
        Ok(rows.get()?.next(py)?.map(Batch))
    }

    /// Cancels the query, if it runs.
    fn cancel(&self) -> PyResult<()> {
        if let Source::Running(rows) = &*lock(&self.0) {
            rows.get()?.cancel();
        }
        Ok(())
    }

    /// The next batch for an event loop, in a tuple. If it is not there yet, returns `None`, and calls back when it may be.
    fn poll(&self, callback: Py<PyAny>) -> PyResult<Option<(Option<Batch>,)>> {
        let rows = match &mut *lock(&self.0) {
            Source::Kept(batches) => return Ok(Some((batches.next().map(Batch),))),
            Source::Running(rows) => Arc::clone(rows),
        };
        Ok(match rows.get()?.poll(callback)? {
            Poll::Ready(batch) => Some((batch.map(Batch),)),
            Poll::Pending => None,
        })
    }
}

/// Some rows of a result, as an Arrow record batch.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.0.num_rows(), self.0.num_columns());
        format!("<coscan.Batch: {rows} rows of {columns} columns>")
    }

    /// The rows as tuples of Python's values.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        values::rows(py, &self.0)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsules::schema(py, &self.0.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<ArrayCapsules<'py>> {
        // The interface allows to return the rows as they are.
        let _as_they_are = requested_schema;
        capsules::batch(py, &self.0)
    }
}
