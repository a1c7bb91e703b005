//! Rows on their way to Python. A task of the query fills a short queue. Whoever takes from it only waits for that, so it may be any thread,
//! with the interpreter or without.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use pyo3::prelude::*;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors;
use crate::process::{self, OfProcess, STEP, Task};

/// The batches that wait in the queue at most.
const QUEUE: usize = 2;

type Queued = (EngineResult<RecordBatch>, OwnedSemaphorePermit);

/// The rows of a query that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Rows {
    schema: SchemaRef,
    queue: Mutex<Receiver<Queued>>,
    _task: Task,
}

impl Rows {
    /// Starts a query.
    pub(crate) fn start(
        schema: SchemaRef,
        query: impl Future<Output = EngineResult<SendableRecordBatchStream>> + Send + 'static,
    ) -> PyResult<Self> {
        let (sender, queue) = mpsc::channel();
        let places = Arc::new(Semaphore::new(QUEUE));
        let task = process::spawn(async move {
            let place = || Arc::clone(&places).acquire_owned();
            let mut batches = match query.await {
                Ok(batches) => batches,
                Err(error) => {
                    if let Ok(place) = place().await {
                        let _nobody_waits = sender.send((Err(error), place));
                    }
                    return;
                }
            };
            while let Some(batch) = batches.next().await {
                let (Ok(place), is_last) = (place().await, batch.is_err()) else { return };
                if sender.send((batch, place)).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Self { schema, queue: Mutex::new(queue), _task: task })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch, for a thread with the interpreter.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let received = process::receive(py, &self.queue)?;
        received.map(|(batch, _)| batch).transpose().map_err(errors::from_engine)
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
            match process::lock(&rows.queue).recv_timeout(STEP) {
                Ok((batch, _)) => return Some(batch.map_err(to_arrow)),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
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
