//! Results.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchIterator};
use arrow::datatypes::SchemaRef;
use arrow::util::pretty::pretty_format_batches;
use datafusion::dataframe::DataFrame;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::batches::Batches;
use crate::capsules;
use crate::collecting::Collecting;
use crate::errors::{from_arrow, from_query};
use crate::kept::Kept;
use crate::process::{OfProcess, wait};
use crate::statement::{Statement, gone};
use crate::stream::Reader;
use crate::texts;

/// The number of rows that are read to show the first ones. A result with fewer is kept, so that it need not run again.
const FEW_ROWS: usize = 10_000;

/// The rows of a statement, which runs when they are first asked for.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Result {
    schema: SchemaRef,
    statement: OfProcess<Arc<Statement>>,
    /// What is to be said of the plan.
    note: Option<String>,
}

impl Result {
    pub(crate) fn new(query: DataFrame) -> Self {
        Self::of(Statement::new(query))
    }

    pub(crate) fn of(statement: Statement) -> Self {
        let schema = Arc::clone(statement.schema());
        Self { schema, statement: OfProcess::new(Arc::new(statement)), note: None }
    }

    /// Adds a sentence to its plan.
    pub(crate) fn with_note(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }

    /// All rows, which stay in memory.
    fn kept(&self, py: Python<'_>) -> PyResult<Arc<Kept>> {
        let statement = self.statement.get()?;
        if statement.is_gone() {
            return Err(gone());
        }
        if let Some(kept) = statement.kept() {
            return Ok(kept);
        }
        let kept = wait(py, statement.collected())?.map_err(|error| from_query(&error))?;
        kept.ok_or_else(gone)
    }

    /// The first rows in at least one batch, and the number of rows if it is known. Keeps all rows if they are few.
    fn first_rows(
        &self,
        py: Python<'_>,
        rows_max: usize,
    ) -> PyResult<(Vec<RecordBatch>, Option<usize>)> {
        let statement = self.statement.get()?;
        if let Some(kept) = statement.kept() {
            return Ok((self.cut(&kept, rows_max), Some(kept.row_count())));
        }
        let read = statement.read(Some(rows_max.max(FEW_ROWS)));
        let (rows, is_all) = wait(py, read)?.map_err(|error| from_query(&error))?;
        let (first, count) = (self.cut(&rows, rows_max), rows.row_count());
        if is_all && !statement.is_gone() {
            // Whoever has read them meanwhile did so without this.
            let _kept = statement.keep(rows);
        }
        Ok((first, is_all.then_some(count)))
    }
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
    fn collect(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.kept(py)?.row_count())
    }

    /// Does the same while an event loop goes on. Returns `None` if the rows are in memory.
    fn start_collecting(&self) -> PyResult<Option<Collecting>> {
        let statement = self.statement.get()?;
        if statement.is_gone() {
            return Err(gone());
        }
        match statement.kept() {
            Some(_) => Ok(None),
            None => Collecting::start(statement).map(Some),
        }
    }

    /// The number of rows, if all are in memory.
    #[getter]
    fn row_count(&self) -> PyResult<Option<usize>> {
        Ok(self.statement.get()?.kept().map(|kept| kept.row_count()))
    }

    /// The error of the rows that were handed over, if they have one.
    fn failure(&self) -> PyResult<Option<PyErr>> {
        Ok(self.statement.get()?.failure())
    }

    /// Cancels the statement, whoever waits for it.
    fn cancel(&self) -> PyResult<()> {
        self.statement.get()?.cancel();
        Ok(())
    }

    /// The chunks that the running statement is done with, and those that it needs as far as it knows.
    fn progress(&self) -> PyResult<(usize, usize)> {
        Ok(self.statement.get()?.progress())
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
        let statement = self.statement.get()?;
        if let Some(kept) = statement.kept() {
            let batches = kept.batches().to_vec().into_iter().map(Ok);
            return capsules::stream(
                py,
                RecordBatchIterator::new(batches, Arc::clone(&self.schema)),
            );
        }
        capsules::stream(py, Reader::new(statement.taken()?))
    }

    /// The batches of rows, each once.
    fn batches(&self) -> PyResult<Batches> {
        let statement = self.statement.get()?;
        Ok(match statement.kept() {
            Some(kept) => Batches::kept(kept.batches().to_vec()),
            None => Batches::running(statement.taken()?),
        })
    }

    /// The next rows, at most this number, as tuples of Python's values. They are fetched once.
    #[pyo3(signature = (rows_max=None))]
    fn fetch<'py>(&self, py: Python<'py>, rows_max: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        self.statement.get()?.fetch(py, rows_max.unwrap_or(usize::MAX))
    }

    /// The plan as text. With `analyze` the statement runs, and the plan has its figures.
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        let explained = self.statement.get()?.explained(analyze);
        let rows = wait(py, explained)?.map_err(|error| from_query(&error))?;
        let plans = rows.iter().map(|rows| texts::texts(rows.column(1)));
        let plans = plans.collect::<PyResult<Vec<_>>>()?.concat();
        Ok(self
            .note
            .iter()
            .chain(plans.iter().flatten())
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n"))
    }

    /// The first rows as a table of text, and the number of rows if it is known.
    fn first_as_table(&self, py: Python<'_>, rows_max: usize) -> PyResult<(String, Option<usize>)> {
        let (first, count) = self.first_rows(py, rows_max)?;
        Ok((pretty_format_batches(&first).map_err(from_arrow)?.to_string(), count))
    }

    /// The first rows as texts, NULL as `None`, and the number of rows if it is known.
    fn first_as_texts(
        &self,
        py: Python<'_>,
        rows_max: usize,
    ) -> PyResult<(Vec<texts::Row>, Option<usize>)> {
        let (first, count) = self.first_rows(py, rows_max)?;
        let rows = first.iter().map(texts::rows).collect::<PyResult<Vec<_>>>()?;
        Ok((rows.concat(), count))
    }
}

impl Result {
    /// The first of these rows, in at least one batch.
    fn cut(&self, kept: &Kept, rows_max: usize) -> Vec<RecordBatch> {
        let mut left = rows_max;
        let mut first = Vec::new();
        for batch in kept.batches() {
            let rows = batch.num_rows().min(left);
            left -= rows;
            first.push(batch.slice(0, rows));
            if left == 0 {
                break;
            }
        }
        if first.is_empty() {
            first.push(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        first
    }
}
