//! Rows that are collected while an event loop goes on.

use std::sync::Arc;
use std::task::Poll;

use datafusion::error::Result as EngineResult;
use pyo3::prelude::*;

use crate::errors::{cancelled, from_engine};
use crate::incoming::Incoming;
use crate::process::OfProcess;
use crate::statement::{Kept, Statement};

/// The rows of a result on their way into memory. Their query is cancelled when this is dropped.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Collecting(OfProcess<(Arc<Statement>, Incoming<EngineResult<Kept>>)>);

impl Collecting {
    pub(crate) fn start(statement: &Arc<Statement>) -> PyResult<Self> {
        let collected = statement.collect();
        let rows = Incoming::start(|outgoing| async move {
            outgoing.send(collected.await).await;
        })?;
        Ok(Self(OfProcess::new((Arc::clone(statement), rows))))
    }
}

#[pymethods]
impl Collecting {
    /// The number of rows, once they are in memory. Until then returns `None`, and calls back when they may be.
    fn poll(&self, callback: Py<PyAny>) -> PyResult<Option<usize>> {
        let (statement, rows) = self.0.get()?;
        match rows.poll(callback) {
            Poll::Pending => Ok(None),
            Poll::Ready(Some(kept)) => {
                Ok(Some(statement.keep(kept.map_err(from_engine)?).row_count()))
            }
            Poll::Ready(None) => Err(cancelled("the interpreter exits, or a thread has panicked")),
        }
    }
}
