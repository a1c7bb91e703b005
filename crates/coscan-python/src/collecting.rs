//! Rows that are collected while an event loop goes on.

use std::sync::Arc;
use std::task::Poll;

use pyo3::prelude::*;

use crate::errors::{from_query, lost_query};
use crate::incoming::{Incoming, Received};
use crate::process::OfProcess;
use crate::statement::{Collected, Statement, gone};

/// The rows of a result on their way into memory. Their query is cancelled when this is dropped, unless others
/// collect them, too.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Collecting(OfProcess<Incoming<Collected>>);

impl Collecting {
    pub(crate) fn start(statement: &Arc<Statement>) -> PyResult<Self> {
        let collected = statement.collected();
        let rows = Incoming::start(|outgoing| async move {
            outgoing.send(collected.await, 0).await;
        })?;
        Ok(Self(OfProcess::new(rows)))
    }
}

#[pymethods]
impl Collecting {
    /// The number of rows, once they are in memory. Until then returns `None`, and calls back when they may be.
    fn poll(&self, callback: Py<PyAny>) -> PyResult<Option<usize>> {
        match self.0.get()?.poll(callback) {
            Poll::Pending => Ok(None),
            Poll::Ready(Received::Value(kept)) => {
                let kept = kept.map_err(|error| from_query(&error))?;
                Ok(Some(kept.ok_or_else(gone)?.row_count()))
            }
            Poll::Ready(Received::End | Received::Lost) => Err(from_query(&lost_query())),
        }
    }

    /// Cancels the query, unless others collect its rows, too.
    fn cancel(&self) -> PyResult<()> {
        self.0.get()?.cancel();
        Ok(())
    }
}
