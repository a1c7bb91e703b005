//! The rows of a statement.

use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::SchemaRef;
use arrow::util::pretty::pretty_format_batches;
use coscan_datafusion::slice_bytes;
use datafusion::dataframe::DataFrame;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::batches::Batches;
use crate::capsules;
use crate::errors::{self, Error, from_engine};
use crate::process::{OfProcess, lock, wait};
use crate::stream::{Reader, Rows};
use crate::{texts, values};

/// The rows of a statement, which runs when they are first asked for.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Result {
    schema: SchemaRef,
    inner: OfProcess<Inner>,
}

struct Inner {
    query: DataFrame,
    state: Mutex<State>,
}

/// What has become of the rows.
enum State {
    /// The statement has not run.
    Planned,
    /// It runs, and rows are fetched.
    Fetched(Arc<Fetch>),
    /// All rows are in memory. The number of rows that were fetched.
    Kept(Arc<Kept>, usize),
    /// The rows went to one consumer.
    Gone,
}

/// Rows that are fetched.
struct Fetch {
    rows: Rows,
    /// The rest of the last batch.
    rest: Mutex<Option<RecordBatch>>,
}

/// Rows in memory, which counts for the budget.
struct Kept {
    batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

impl Result {
    pub(crate) fn new(query: DataFrame) -> Self {
        let schema = Arc::clone(query.schema().inner());
        let inner = Inner { query, state: Mutex::new(State::Planned) };
        Self { schema, inner: OfProcess::new(inner) }
    }

    fn start(&self) -> PyResult<Rows> {
        let query = self.inner.get()?.query.clone();
        Rows::start(Arc::clone(&self.schema), query.execute_stream())
    }

    /// All rows, which stay in memory.
    fn kept(&self, py: Python<'_>) -> PyResult<Arc<Kept>> {
        let inner = self.inner.get()?;
        match &*lock(&inner.state) {
            State::Planned => {}
            State::Kept(kept, _) => return Ok(Arc::clone(kept)),
            State::Fetched(_) | State::Gone => return Err(gone()),
        }
        let rows = self.start()?;
        let pool = Arc::clone(inner.query.task_ctx().memory_pool());
        let memory = MemoryConsumer::new("result in Python").register(&pool);
        let mut batches = Vec::new();
        while let Some(batch) = rows.next(py)? {
            memory.try_grow(slice_bytes(&batch)).map_err(from_engine)?;
            batches.push(batch);
        }
        let kept = Arc::new(Kept { batches, _memory: memory });
        *lock(&inner.state) = State::Kept(Arc::clone(&kept), 0);
        Ok(kept)
    }
}

fn gone() -> PyErr {
    Error::new_err(
        "the rows were already read, and a result streams once: call .collect() first, or run the statement again",
    )
}

#[pymethods]
impl Result {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The types of the columns, as Arrow names them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// Runs the statement, and keeps all rows in memory, so that they can be read again and again. Returns their number.
    fn keep(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.kept(py)?.batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsules::schema(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to return the rows as they are.
        let _as_they_are = requested_schema;
        if let State::Kept(kept, _) = &*lock(&self.inner.get()?.state) {
            let batches = kept.batches.clone().into_iter().map(Ok);
            return capsules::stream(
                py,
                RecordBatchIterator::new(batches, Arc::clone(&self.schema)),
            );
        }
        capsules::stream(py, Reader::new(OfProcess::new(self.taken()?))?)
    }

    /// The batches of rows, each once.
    fn batches(&self) -> PyResult<Batches> {
        let kept = match &*lock(&self.inner.get()?.state) {
            State::Kept(kept, _) => Some(Arc::clone(kept)),
            _ => None,
        };
        Ok(match kept {
            Some(kept) => Batches::kept(kept.batches.clone()),
            None => Batches::running(self.taken()?),
        })
    }

    /// The next rows, at most this number, as tuples of Python's values. They are fetched once.
    #[pyo3(signature = (rows_max=None))]
    fn fetch<'py>(&self, py: Python<'py>, rows_max: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let rows_max = rows_max.unwrap_or(usize::MAX);
        let inner = self.inner.get()?;
        let fetch = {
            let mut state = lock(&inner.state);
            match &mut *state {
                State::Planned => {
                    let fetch = Fetch { rows: self.start()?, rest: Mutex::new(None) };
                    let fetch = Arc::new(fetch);
                    *state = State::Fetched(Arc::clone(&fetch));
                    fetch
                }
                State::Fetched(fetch) => Arc::clone(fetch),
                State::Kept(kept, fetched) => {
                    let kept = Arc::clone(kept);
                    let first = *fetched;
                    let all: usize = kept.batches.iter().map(RecordBatch::num_rows).sum();
                    *fetched = first.saturating_add(rows_max).min(all);
                    drop(state);
                    return values::rows_of(py, &kept.batches, first, rows_max);
                }
                State::Gone => return Err(gone()),
            }
        };
        fetch.rows(py, rows_max)
    }

    /// The plan as text. With `analyze` the statement runs, and the plan has its figures.
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        let query = self.inner.get()?.query.clone();
        let explained = async move { query.explain(false, analyze)?.collect().await };
        let rows = wait(py, explained)?.map_err(from_engine)?;
        let plans = rows.iter().map(|rows| texts::texts(rows.column(1)));
        Ok(plans.collect::<PyResult<Vec<_>>>()?.concat().join("\n"))
    }

    /// The first rows as a table of text, and the number of rows in all. Keeps all rows.
    fn text(&self, py: Python<'_>, rows_max: usize) -> PyResult<(String, usize)> {
        let kept = self.kept(py)?;
        let first = first_rows(&kept.batches, &self.schema, rows_max);
        let table = pretty_format_batches(&first);
        let table = table.map_err(|error| errors::from_any(Box::new(error)))?;
        Ok((table.to_string(), kept.batches.iter().map(RecordBatch::num_rows).sum()))
    }

    /// The first rows as tuples of texts, NULL as `None`. Keeps all rows.
    fn texts(&self, py: Python<'_>, rows_max: usize) -> PyResult<Vec<Vec<Option<String>>>> {
        let kept = self.kept(py)?;
        let first = first_rows(&kept.batches, &self.schema, rows_max);
        let rows = first.iter().map(texts::rows);
        Ok(rows.collect::<PyResult<Vec<_>>>()?.concat())
    }
}

/// The first rows of these batches, which are at least one.
fn first_rows(batches: &[RecordBatch], schema: &SchemaRef, rows_max: usize) -> Vec<RecordBatch> {
    let mut left = rows_max;
    let mut first = Vec::new();
    for batch in batches {
        let rows = batch.num_rows().min(left);
        left -= rows;
        first.push(batch.slice(0, rows));
        if left == 0 {
            break;
        }
    }
    if first.is_empty() {
        first.push(RecordBatch::new_empty(Arc::clone(schema)));
    }
    first
}

impl Result {
    /// Starts the statement for one consumer.
    fn taken(&self) -> PyResult<Rows> {
        let mut state = lock(&self.inner.get()?.state);
        match &*state {
            State::Planned => {}
            _ => return Err(gone()),
        }
        let rows = self.start()?;
        *state = State::Gone;
        Ok(rows)
    }
}

impl Fetch {
    fn rows<'py>(&self, py: Python<'py>, rows_max: usize) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        while list.len() < rows_max {
            let rest = lock(&self.rest).take();
            let Some(batch) = rest.map_or_else(|| self.rows.next(py), |rest| Ok(Some(rest)))?
            else {
                break;
            };
            let rows = batch.num_rows().min(rows_max - list.len());
            for row in values::rows(py, &batch.slice(0, rows))? {
                list.append(row)?;
            }
            if rows < batch.num_rows() {
                *lock(&self.rest) = Some(batch.slice(rows, batch.num_rows() - rows));
            }
        }
        Ok(list)
    }
}
