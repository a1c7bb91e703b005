//! Options for reading Parquet files, from `OPTIONS (…)` and the session.

use std::collections::HashMap;

use coscan_storage::table::{ColumnTypes, FileOptions};
use datafusion::arrow::datatypes::TimeUnit;
use datafusion::catalog::Session;
use datafusion::common::config::{ConfigFileType, ParquetOptions};
use datafusion::error::{DataFusionError, Result};

/// The options that a shared table supports.
const SUPPORTED: [&str; 3] =
    ["format.binary_as_string", "format.coerce_int96", "format.schema_force_view_types"];

/// The options for opening the files of a table: `usual`, with the types set by the table's options or otherwise by the
/// session. If a shared table does not support an option, returns that option.
///
/// # Errors
/// If the value of an option is invalid, or there is no such option.
pub(crate) fn file_options(
    session: &dyn Session,
    options: &HashMap<String, String>,
    usual: FileOptions,
) -> Result<std::result::Result<FileOptions, String>> {
    let mut table = session.default_table_options();
    table.set_config_format(ConfigFileType::PARQUET);
    table.alter_with_string_hash_map(options)?;
    let others = options.keys().filter(|option| !SUPPORTED.contains(&option.as_str()));
    if let Some(option) = others.min() {
        return Ok(Err(option.clone()));
    }
    Ok(match column_types(&table.parquet.global)? {
        Some(types) => Ok(FileOptions { types, ..usual }),
        None => Err("format.coerce_int96_tz".to_owned()),
    })
}

/// The types set by Parquet options. `None` if they require INT96 timestamps to be read in a time zone, which coscan
/// does not support.
///
/// # Errors
/// If the value of an option is invalid.
pub(crate) fn column_types(parquet: &ParquetOptions) -> Result<Option<ColumnTypes>> {
    let int96_unit = parquet.coerce_int96.as_deref().map(time_unit).transpose()?;
    let is_zoned = int96_unit.is_some() && parquet.coerce_int96_tz.is_some();
    Ok((!is_zoned).then_some(ColumnTypes {
        views: parquet.schema_force_view_types,
        binary_as_string: parquet.binary_as_string,
        int96_unit,
    }))
}

/// Sets the Parquet options for types, as the inverse of [`column_types`].
pub(crate) fn set_column_types(parquet: &mut ParquetOptions, types: ColumnTypes) {
    let unit = |unit| match unit {
        TimeUnit::Nanosecond => "ns",
        TimeUnit::Microsecond => "us",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Second => "s",
    };
    parquet.schema_force_view_types = types.views;
    parquet.binary_as_string = types.binary_as_string;
    parquet.coerce_int96 = types.int96_unit.map(|int96| unit(int96).to_owned());
}

fn time_unit(text: &str) -> Result<TimeUnit> {
    Ok(match text.to_lowercase().as_str() {
        "ns" => TimeUnit::Nanosecond,
        "us" => TimeUnit::Microsecond,
        "ms" => TimeUnit::Millisecond,
        "s" => TimeUnit::Second,
        _ => {
            return Err(DataFusionError::Configuration(format!(
                "coerce_int96 is {text}; it must be ns, us, ms or s"
            )));
        }
    })
}
