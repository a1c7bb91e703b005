//! What coscan reports, as the errors of DataFusion that fit.

use coscan_runtime::ScanError;
use coscan_runtime::core::StartScanError;
use coscan_storage::stores::StoreError;
use coscan_storage::table::TableError;
use datafusion::error::DataFusionError;

/// A scan that cannot start or go on.
pub(crate) fn from_scan(error: ScanError) -> DataFusionError {
    match error {
        ScanError::Exhausted { .. } | ScanError::Start(StartScanError::PoolTooSmall { .. }) => {
            DataFusionError::ResourcesExhausted(error.to_string())
        }
        ScanError::UnknownColumn { .. } | ScanError::Start(_) => {
            DataFusionError::Plan(error.to_string())
        }
        error => DataFusionError::External(Box::new(error)),
    }
}

/// A location that leads to no files.
pub(crate) fn from_store(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Files that make no table.
pub(crate) fn from_table(error: TableError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
