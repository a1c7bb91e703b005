//! Errors of the log as errors of the engine.

use datafusion::common::DataFusionError;
use delta_kernel::KernelError;
use tokio::task::JoinError;
use url::Url;

/// An error of the log of a table.
pub(crate) fn from_kernel(table: &Url, error: KernelError) -> DataFusionError {
    DataFusionError::External(format!("the Delta table {table} cannot be read: {error}").into())
}

/// The error of a thread that should have read the log, and panicked or was cancelled.
pub(crate) fn from_join(table: &Url, error: &JoinError) -> DataFusionError {
    DataFusionError::External(format!("reading the log of {table} failed: {error}").into())
}
