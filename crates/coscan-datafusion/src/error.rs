//! Errors of coscan as errors of DataFusion, and errors of DataFusion as text for users.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use coscan_runtime::core::StartScanError;
use coscan_runtime::{OpenError, ScanError};
use coscan_storage::stores::{StoreError, error_text};
use coscan_storage::table::TableError;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;

/// Converts the error of a scan that cannot start or continue.
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

/// Converts the error of a location without files.
pub(crate) fn from_store(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Converts the error of files that cannot be opened.
pub(crate) fn from_open(error: OpenError) -> DataFusionError {
    match error {
        OpenError::Memory(error) => from_scan(error),
        error => DataFusionError::External(Box::new(error)),
    }
}

/// Converts the error of a database.
pub(crate) fn from_database(error: coscan_database::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Whether a statement failed because another transaction wrote the same row and committed first. It may succeed if its
/// transaction is run again.
#[must_use]
pub fn is_conflict(error: &DataFusionError) -> bool {
    let DataFusionError::External(error) = error.find_root() else { return false };
    matches!(error.downcast_ref(), Some(coscan_database::Error::Conflict { .. }))
}

/// Whether a statement failed because a table that it names was dropped or replaced since it was planned.
#[must_use]
pub fn is_of_dropped_table(error: &DataFusionError) -> bool {
    let DataFusionError::External(error) = error.find_root() else { return false };
    matches!(error.downcast_ref(), Some(coscan_database::Error::NoSuchTable))
}

/// Converts the error of files that do not form a table.
pub(crate) fn from_table(error: TableError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The reason why a statement failed, for its author. It leaves out the prefixes of layers that only pass the error on,
/// such as `Arrow error: External error: `. A prefix that names the kind of error stays, such as
/// `Resources exhausted: `.
///
/// Its source is the whole error.
#[derive(Debug)]
pub struct QueryError(DataFusionError);

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        Self(error)
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

impl Error for QueryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// The text of an error, without the errors around it that only pass it on.
fn text(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        text_of_engine(error)
    } else if let Some(error) = error.downcast_ref::<Arc<DataFusionError>>() {
        text_of_engine(error)
    } else if let Some(ArrowError::ExternalError(inner)) = error.downcast_ref() {
        text(inner.as_ref())
    } else if let Some(ParquetError::External(inner)) = error.downcast_ref() {
        text(inner.as_ref())
    } else if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        text(inner)
    } else {
        error.to_string()
    }
}

fn text_of_engine(error: &DataFusionError) -> String {
    match error {
        DataFusionError::External(inner) => text(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => text(inner.as_ref()),
        DataFusionError::ParquetError(inner) => text(inner.as_ref()),
        DataFusionError::IoError(inner) => text(inner),
        DataFusionError::ObjectStore(inner) => error_text(inner),
        DataFusionError::SQL(inner, _) => inner.to_string(),
        DataFusionError::Shared(inner) => text_of_engine(inner),
        DataFusionError::Diagnostic(_, inner) => text_of_engine(inner),
        DataFusionError::Context(context, inner) => {
            format!("{context}\ncaused by\n{}", text_of_engine(inner))
        }
        DataFusionError::Collection(errors) => {
            errors.iter().map(text_of_engine).collect::<Vec<_>>().join("\n")
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: DataFusionError) -> String {
        QueryError::from(error).to_string()
    }

    fn scan_error() -> DataFusionError {
        from_scan(ScanError::ReadPanicked)
    }

    #[test]
    fn layers_that_only_pass_an_error_on_are_not_shown() {
        let expected = ScanError::ReadPanicked.to_string();
        let arrow = |error| DataFusionError::from(ArrowError::ExternalError(Box::new(error)));
        let parquet = |error| DataFusionError::from(ParquetError::External(Box::new(error)));
        let shared = |error| DataFusionError::Shared(Arc::new(error));
        for error in [
            scan_error(),
            arrow(scan_error()),
            parquet(scan_error()),
            shared(arrow(shared(scan_error()))),
            DataFusionError::External(Box::new(Arc::new(scan_error()))),
            DataFusionError::from(io::Error::other(arrow(scan_error()))),
        ] {
            assert_eq!(shown(error), expected);
        }
        let context = scan_error().context("while it spills");
        assert_eq!(shown(context), format!("while it spills\ncaused by\n{expected}"));
        assert_eq!(
            shown(DataFusionError::Collection(vec![scan_error(), scan_error()])),
            [expected.as_str(); 2].join("\n")
        );
    }

    #[test]
    fn the_sort_of_an_error_is_shown() {
        let exhausted = || DataFusionError::ResourcesExhausted("no memory".to_owned());
        let passed_on = DataFusionError::from(ArrowError::ExternalError(Box::new(exhausted())));
        assert_eq!(shown(passed_on), "Resources exhausted: no memory");
        let division = DataFusionError::from(ArrowError::DivideByZero);
        assert_eq!(shown(division), ArrowError::DivideByZero.to_string());
    }

    #[test]
    fn the_whole_error_is_its_source() {
        let error = QueryError::from(scan_error());
        assert_eq!(error.source().map(ToString::to_string), Some(scan_error().to_string()));
    }
}
