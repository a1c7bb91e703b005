//! A statement that runs for a result.

use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use coscan_datafusion::{ScanCounters, slice_bytes};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::Error;
use crate::process::lock;
use crate::stream::Rows;
use crate::values;

/// A statement, and what has become of its rows.
pub(crate) struct Statement {
    query: DataFrame,
    schema: SchemaRef,
    state: Mutex<State>,
    /// The counters of its last execution.
    counters: Arc<Mutex<ScanCounters>>,
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
pub(crate) struct Kept {
    batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

impl Statement {
    pub(crate) fn new(query: DataFrame) -> Self {
        let schema = Arc::clone(query.schema().inner());
        Self { query, schema, state: Mutex::new(State::Planned), counters: Arc::default() }
    }

    pub(crate) fn query(&self) -> &DataFrame {
        &self.query
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The chunks that the last execution is done with, and those that it needs as far as it knows.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let progress = lock(&self.counters).progress();
        (progress.done, progress.needed)
    }

    /// The rows of an execution.
    fn execute(
        &self,
    ) -> impl Future<Output = EngineResult<SendableRecordBatchStream>> + Send + 'static {
        let (query, counters) = (self.query.clone(), Arc::clone(&self.counters));
        async move {
            let context = Arc::new(query.task_ctx());
            let plan = query.create_physical_plan().await?;
            *lock(&counters) = ScanCounters::of(plan.as_ref());
            execute_stream(plan, context)
        }
    }

    fn start(&self) -> PyResult<Rows> {
        Rows::start(Arc::clone(&self.schema), self.execute())
    }

    /// Starts the statement for one consumer.
    ///
    /// # Errors
    /// If its rows were read before.
    pub(crate) fn taken(&self) -> PyResult<Rows> {
        let mut state = lock(&self.state);
        match &*state {
            State::Planned => {}
            _ => return Err(gone()),
        }
        let rows = self.start()?;
        *state = State::Gone;
        Ok(rows)
    }

    /// The rows in memory, if they are there.
    pub(crate) fn kept(&self) -> Option<Arc<Kept>> {
        match &*lock(&self.state) {
            State::Kept(kept, _) => Some(Arc::clone(kept)),
            _ => None,
        }
    }

    /// Refuses rows that were read without being kept.
    pub(crate) fn check_not_gone(&self) -> PyResult<()> {
        match &*lock(&self.state) {
            State::Planned | State::Kept(..) => Ok(()),
            State::Fetched(_) | State::Gone => Err(gone()),
        }
    }

    /// The next rows, at most this number, as tuples of Python's values. They are fetched once.
    pub(crate) fn fetch<'py>(
        &self,
        py: Python<'py>,
        rows_max: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let fetch = {
            let mut state = lock(&self.state);
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
                    *fetched = first.saturating_add(rows_max).min(kept.row_count());
                    drop(state);
                    return values::rows_of(py, &kept.batches, first, rows_max);
                }
                State::Gone => return Err(gone()),
            }
        };
        fetch.rows(py, rows_max)
    }

    /// All rows, in memory.
    pub(crate) fn collect(&self) -> impl Future<Output = EngineResult<Kept>> + Send + 'static {
        let rows = self.execute();
        let pool = Arc::clone(self.query.task_ctx().memory_pool());
        async move {
            let memory = MemoryConsumer::new("result in Python").register(&pool);
            let (mut rows, mut batches) = (rows.await?, Vec::new());
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                memory.try_grow(slice_bytes(&batch))?;
                batches.push(batch);
            }
            Ok(Kept { batches, _memory: memory })
        }
    }

    /// Keeps collected rows, unless others came first.
    pub(crate) fn keep(&self, kept: Kept) -> Arc<Kept> {
        let mut state = lock(&self.state);
        if let State::Kept(kept, _) = &*state {
            return Arc::clone(kept);
        }
        let kept = Arc::new(kept);
        *state = State::Kept(Arc::clone(&kept), 0);
        kept
    }
}

impl Kept {
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(crate) fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn gone() -> PyErr {
    Error::new_err(
        "the rows were already read, and a result streams once: call .collect() first, or run the statement again",
    )
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
