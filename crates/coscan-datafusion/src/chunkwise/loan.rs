//! Rows that are lent to a plan, and come back when it has read them.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

/// A source of rows that is lent for a while.
pub(super) trait Lendable: Send + 'static {
    fn schema(&self) -> SchemaRef;

    /// The next rows of the loan, or `None` at its end.
    fn poll_rows(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>>;
}

/// Lends rows to one plan at a time.
pub(super) struct Loan<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Loan<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Lendable> Loan<T> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// A stream of rows. It gives them back when it is dropped.
    pub(super) fn lend(&self, rows: T) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let mut lent = Lent { rows: Some(rows), lender: self.clone() };
        let rows = stream::poll_fn(move |context| lent.poll_rows(context));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// The rows that were given back, or `None` if they are still lent.
    pub(super) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Rows that are being read.
struct Lent<T> {
    /// `None` once they are given back.
    rows: Option<T>,
    lender: Loan<T>,
}

impl<T: Lendable> Lent<T> {
    fn poll_rows(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.rows.as_mut().map_or(Poll::Ready(None), |rows| rows.poll_rows(context))
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        *self.lender.0.lock().unwrap_or_else(PoisonError::into_inner) = self.rows.take();
    }
}
