//! The rows of a query that runs.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use coscan_datafusion::slice_bytes;
use coscan_server::queries::QueryError;
use coscan_server::query_error;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use pyo3::prelude::*;
use tokio_util::sync::CancellationToken;

use crate::errors;
use crate::incoming::{Incoming, Outgoing, Received};
use crate::process::{self, OfProcess, lock};

/// The error of rows, for those who get only its text.
pub(crate) type Failure = Arc<Mutex<Option<QueryError>>>;

type Batch = Result<RecordBatch, QueryError>;

/// The rows of a query that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    batches: Incoming<Batch>,
    failure: Failure,
}

impl Rows {
    /// Starts a query.
    pub(crate) fn start(
        schema: SchemaRef,
        query: impl Future<Output = EngineResult<SendableRecordBatchStream>> + Send + 'static,
        failure: Failure,
        cancelled: CancellationToken,
    ) -> PyResult<Self> {
        let batches = Incoming::start(|outgoing| async move {
            let ended = tokio::select! {
                biased;
                () = cancelled.cancelled() => Err(errors::cancelled_query()),
                ended = send_all(query, &outgoing) => ended,
            };
            if let Err(error) = ended {
                outgoing.send(Err(error), 0).await;
            }
        })?;
        Ok(Self { schema, batches, failure })
    }

    /// The next batch, for a thread with the interpreter.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next = self.batches.next(py)?;
        self.checked(next).map_err(|error| errors::from_query(&error))
    }

    /// The next batch, for an event loop: see [`Incoming::poll`].
    pub(crate) fn poll(&self, callback: Py<PyAny>) -> PyResult<Poll<Option<RecordBatch>>> {
        match self.batches.poll(callback) {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(next) => match self.checked(next) {
                Ok(next) => Ok(Poll::Ready(next)),
                Err(error) => Err(errors::from_query(&error)),
            },
        }
    }

    /// The next batch. An error is remembered, and given again.
    fn checked(&self, received: Received<Batch>) -> Result<Option<RecordBatch>, QueryError> {
        let error = match received {
            Received::Value(Ok(batch)) => return Ok(Some(batch)),
            Received::Value(Err(error)) => error,
            Received::End => match lock(&self.failure).clone() {
                Some(error) => error,
                None => return Ok(None),
            },
            Received::Lost => errors::lost_query(),
        };
        Err(lock(&self.failure).get_or_insert(error).clone())
    }

    /// Cancels the query.
    pub(crate) fn cancel(&self) {
        self.batches.cancel();
    }
}

/// Sends the rows of a query, up to its error.
async fn send_all(
    query: impl Future<Output = EngineResult<SendableRecordBatchStream>>,
    outgoing: &Outgoing<Batch>,
) -> Result<(), QueryError> {
    let mut batches = query.await.map_err(query_error)?;
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(query_error)?;
        let bytes = slice_bytes(&batch);
        if !outgoing.send(Ok(batch), bytes).await {
            break;
        }
    }
    Ok(())
}

/// The rows of a query for a consumer of Arrow's C stream interface.
pub(crate) struct Reader {
    schema: SchemaRef,
    /// `None` after the last one.
    rows: Option<OfProcess<Rows>>,
}

impl Reader {
    pub(crate) fn new(rows: Rows) -> Self {
        Self { schema: Arc::clone(&rows.schema), rows: Some(OfProcess::new(rows)) }
    }

    fn receive(&self) -> Option<Result<RecordBatch, ArrowError>> {
        let rows = match self.rows.as_ref()?.get() {
            Ok(rows) => rows,
            Err(error) => return Some(Err(ArrowError::ComputeError(error.to_string()))),
        };
        loop {
            if let Poll::Ready(next) = rows.batches.next_soon() {
                // Arrow's interface passes on the text only.
                let text = |error: QueryError| ArrowError::ComputeError(error.text);
                return rows.checked(next).map_err(text).transpose();
            }
            if process::is_main_thread() && is_interrupted() {
                return Some(Err(ArrowError::ComputeError("cancelled by Ctrl-C".to_owned())));
            }
        }
    }
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
