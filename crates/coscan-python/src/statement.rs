//! A statement that runs for a result.

use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use coscan_datafusion::ScanCounters;
use coscan_server::queries::{ErrorKind, QueryError};
use coscan_server::query_error;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use pyo3::prelude::*;
use pyo3::types::PyList;
use tokio_util::sync::CancellationToken;

use crate::errors::{self, Error};
use crate::kept::Kept;
use crate::process::{lock, lock_when_free};
use crate::stream::{Failure, Rows};
use crate::values;

/// A statement, and what has become of its rows.
pub(crate) struct Statement {
    query: DataFrame,
    schema: SchemaRef,
    state: Mutex<State>,
    /// The counters of its last execution.
    counters: Arc<Mutex<ScanCounters>>,
    /// The error of its rows, if they have one.
    failure: Failure,
    cancelled: CancellationToken,
    /// Held by whoever fetches.
    fetching: Mutex<()>,
    /// What those wait for who collect.
    collecting: Mutex<Option<WeakShared<BoxFuture<'static, Collected>>>>,
}

/// All rows, or `None` if others have read them.
pub(crate) type Collected = Result<Option<Arc<Kept>>, QueryError>;

/// What has become of the rows.
enum State {
    /// Nobody has them.
    Planned,
    /// They are fetched.
    Fetched(Arc<Fetch>),
    /// All are in memory. The number of rows that were fetched.
    Kept(Arc<Kept>, usize),
    /// They went to one consumer.
    Gone,
}

/// Rows that are fetched.
struct Fetch {
    rows: Rows,
    /// The rest of the last batch.
    rest: Mutex<Option<RecordBatch>>,
}

impl Statement {
    pub(crate) fn new(query: DataFrame) -> Self {
        Self {
            schema: Arc::clone(query.schema().inner()),
            query,
            state: Mutex::new(State::Planned),
            counters: Arc::default(),
            failure: Failure::default(),
            cancelled: CancellationToken::new(),
            fetching: Mutex::new(()),
            collecting: Mutex::default(),
        }
    }

    /// One that was executed.
    pub(crate) fn executed(query: DataFrame, batches: Vec<RecordBatch>) -> EngineResult<Self> {
        let kept = Kept::executed(&query, batches)?;
        let statement = Self::new(query);
        *lock(&statement.state) = State::Kept(Arc::new(kept), 0);
        Ok(statement)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The chunks that the last execution is done with, and those that it needs as far as it knows.
    pub(crate) fn progress(&self) -> (usize, usize) {
        let progress = lock(&self.counters).progress();
        (progress.done, progress.needed)
    }

    /// The error of the rows that were handed over, if they have one.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        lock(&self.failure).as_ref().map(errors::from_query)
    }

    /// Ends all executions, also those to come.
    pub(crate) fn cancel(&self) {
        self.cancelled.cancel();
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
        let (schema, failure) = (Arc::clone(&self.schema), Arc::clone(&self.failure));
        Rows::start(schema, self.execute(), failure, self.cancelled.clone())
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

    /// Whether rows were read without being kept.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(&*lock(&self.state), State::Fetched(_) | State::Gone)
    }

    /// The next rows, at most this number, as tuples of Python's values. They are fetched once.
    pub(crate) fn fetch<'py>(
        &self,
        py: Python<'py>,
        rows_max: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        // Each row once, whichever threads fetch.
        let _fetching = lock_when_free(py, &self.fetching)?;
        let fetch = {
            let mut state = lock(&self.state);
            match &mut *state {
                State::Planned => {
                    let fetch = Fetch { rows: self.start()?, rest: Mutex::new(None) };
                    let fetch = Arc::new(fetch);
                    *state = State::Fetched(Arc::clone(&fetch));
                    fetch
                }
                State::Fetched(fetch) => {
                    if let Some(failure) = self.failure() {
                        return Err(failure);
                    }
                    Arc::clone(fetch)
                }
                State::Kept(kept, fetched) => {
                    let (kept, first) = (Arc::clone(kept), *fetched);
                    drop(state);
                    let rows = values::rows_of(py, kept.batches(), first, rows_max)?;
                    if let State::Kept(_, fetched) = &mut *lock(&self.state) {
                        *fetched = first + rows.len();
                    }
                    return Ok(rows);
                }
                State::Gone => return Err(gone()),
            }
        };
        let rows = fetch.rows(py, rows_max);
        if rows.is_err() {
            // The rows of this call are lost. What follows them must not look like all that there is.
            let lost = "the rows are lost: a call that fetched them has failed, or was interrupted";
            let lost = || QueryError::new(ErrorKind::Internal, lost);
            lock(&self.failure).get_or_insert_with(lost);
            fetch.rows.cancel();
        }
        rows
    }

    /// Reads rows into memory: all, or more than `rows_max` of them. Returns whether they are all.
    pub(crate) fn read(
        &self,
        rows_max: Option<usize>,
    ) -> impl Future<Output = Result<(Kept, bool), QueryError>> + Send + 'static {
        let (query, rows) = (self.query.clone(), self.execute());
        let read = async move { Kept::read(&query, rows.await?, rows_max).await };
        until_cancelled(read, self.cancelled.clone())
    }

    /// Reads all rows into memory, once for all who ask meanwhile. Stops when all of them have dropped this. Gives `None` if others have
    /// read the rows.
    pub(crate) fn collected(self: &Arc<Self>) -> Shared<BoxFuture<'static, Collected>> {
        let mut collecting = lock(&self.collecting);
        if let Some(running) = collecting.as_ref().and_then(WeakShared::upgrade) {
            return running;
        }
        let statement = Arc::clone(self);
        let collect = async move {
            if let Some(kept) = statement.kept() {
                return Ok(Some(kept));
            }
            if statement.is_gone() {
                return Ok(None);
            }
            let (kept, _) = statement.read(None).await?;
            Ok(statement.keep(kept))
        };
        let collect = collect.boxed().shared();
        *collecting = collect.downgrade();
        collect
    }

    /// The rows of `EXPLAIN`, or of `EXPLAIN ANALYZE`, which runs the statement.
    pub(crate) fn explained(
        &self,
        analyze: bool,
    ) -> impl Future<Output = Result<Vec<RecordBatch>, QueryError>> + Send + 'static {
        let query = self.query.clone();
        let explained = async move { query.explain(false, analyze)?.collect().await };
        until_cancelled(explained, self.cancelled.clone())
    }

    /// Keeps all rows. Returns those that are kept, or `None` if others have read the rows meanwhile.
    pub(crate) fn keep(&self, kept: Kept) -> Option<Arc<Kept>> {
        let mut state = lock(&self.state);
        match &*state {
            State::Kept(kept, _) => return Some(Arc::clone(kept)),
            State::Fetched(_) | State::Gone => return None,
            State::Planned => {}
        }
        let kept = Arc::new(kept);
        *state = State::Kept(Arc::clone(&kept), 0);
        Some(kept)
    }
}

/// What comes of a query, unless it is cancelled first.
async fn until_cancelled<T>(
    run: impl Future<Output = EngineResult<T>>,
    cancelled: CancellationToken,
) -> Result<T, QueryError> {
    tokio::select! {
        biased;
        () = cancelled.cancelled() => Err(errors::cancelled_query()),
        done = run => done.map_err(query_error),
    }
}

pub(crate) fn gone() -> PyErr {
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
