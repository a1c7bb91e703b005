//! The rows of a query that runs.

use std::sync::Arc;
use std::task::Poll;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use pyo3::prelude::*;

use crate::errors;
use crate::incoming::Incoming;
use crate::process::{self, OfProcess};

/// The rows of a query that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    batches: Incoming<EngineResult<RecordBatch>>,
}

impl Rows {
    /// Starts a query.
    pub(crate) fn start(
        schema: SchemaRef,
        query: impl Future<Output = EngineResult<SendableRecordBatchStream>> + Send + 'static,
    ) -> PyResult<Self> {
        let batches = Incoming::start(|outgoing| async move {
            let mut batches = match query.await {
                Ok(batches) => batches,
                Err(error) => {
                    outgoing.send(Err(error)).await;
                    return;
                }
            };
            while let Some(batch) = batches.next().await {
                let is_last = batch.is_err();
                if !outgoing.send(batch).await || is_last {
                    return;
                }
            }
        })?;
        Ok(Self { schema, batches })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch, for a thread with the interpreter.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        self.batches.next(py)?.transpose().map_err(errors::from_engine)
    }

    /// The next batch, for an event loop: see [`Incoming::poll`].
    pub(crate) fn poll(&self, callback: Py<PyAny>) -> PyResult<Poll<Option<RecordBatch>>> {
        Ok(match self.batches.poll(callback) {
            Poll::Ready(next) => Poll::Ready(next.transpose().map_err(errors::from_engine)?),
            Poll::Pending => Poll::Pending,
        })
    }
}

/// The rows of a query for a consumer of Arrow's C stream interface.
pub(crate) struct Reader {
    schema: SchemaRef,
    rows: Option<OfProcess<Rows>>,
}

impl Reader {
    pub(crate) fn new(rows: OfProcess<Rows>) -> PyResult<Self> {
        let schema = Arc::clone(rows.get()?.schema());
        Ok(Self { schema, rows: Some(rows) })
    }

    fn receive(&self) -> Option<Result<RecordBatch, ArrowError>> {
        let rows = match self.rows.as_ref()?.get() {
            Ok(rows) => rows,
            Err(error) => return Some(Err(ArrowError::ComputeError(error.to_string()))),
        };
        loop {
            if let Poll::Ready(next) = rows.batches.next_soon() {
                return next.map(|batch| batch.map_err(to_arrow));
            }
            if process::is_main_thread() && is_interrupted() {
                return Some(Err(ArrowError::ComputeError("cancelled by Ctrl-C".to_owned())));
            }
        }
    }
}

/// The text of an error, since Arrow's interface passes nothing else on.
fn to_arrow(error: DataFusionError) -> ArrowError {
    ArrowError::ComputeError(coscan_server::query_error(error).text)
}

/// Whether Ctrl-C was pressed. The interpreter sees it again, and raises `KeyboardInterrupt` when the consumer returns.
fn is_interrupted() -> bool {
    let interrupted = Python::try_attach(|py| py.check_signals().is_err()).unwrap_or(false);
    if interrupted {
        #[expect(unsafe_code, reason = "it may be called at any time")]
        unsafe {
            pyo3::ffi::PyErr_SetInterrupt();
        }
    }
    interrupted
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.receive();
        if !matches!(next, Some(Ok(_))) {
            self.rows = None; // Ends the query.
        }
        next
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
