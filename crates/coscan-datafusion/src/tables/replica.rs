//! Replicas: other files with the rows of a table, in another order or layout [CS11 §8.2.1].
//!
//! Footers show whether a replica has the columns of the table and the same number of rows. The user has to ensure that
//! the rows are the same.

use std::sync::Arc;

use coscan_storage::table::ParquetTable;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::tables::source::ScanSource;

/// Checks that a replica has the columns of a table. `is_declared` is whether it was opened with them. If not, columns
/// in the names of directories may have any type.
///
/// # Errors
/// If it lacks a column, has one of another type, or has an additional one.
pub(crate) fn check_columns(
    table: &ScanSource,
    replica: &ScanSource,
    is_declared: bool,
) -> Result<()> {
    let (name, of) = (&replica.name, &table.name);
    let (table, replica) = (table.table.table(), replica.table.table());
    for field in table.schema().fields() {
        let column = field.name();
        let found = replica.schema().index_of(column).ok();
        let Some(found) = found.filter(|_| is_stored(replica, column) || !is_stored(table, column))
        else {
            return plan_err!(
                "replica {name} of table {of} does not have column {column}; write all columns of the table to it, or \
                 leave it out"
            );
        };
        let (expected, actual) = (field.data_type(), replica.schema().field(found).data_type());
        let may_differ = !is_declared && is_constant(replica, column);
        if !may_differ && logical(expected) != logical(actual) {
            return plan_err!(
                "column {column} is of type {actual} in replica {name} and of type {expected} in table {of}; write the \
                 replica with the type of the table"
            );
        }
    }
    match replica.schema().fields().iter().find(|field| !has(table.schema(), field)) {
        Some(field) => plan_err!(
            "replica {name} has column {}, which table {of} does not have; write the replica without it",
            field.name()
        ),
        None => Ok(()),
    }
}

/// Checks that a replica has the same number of rows as its table.
///
/// # Errors
/// If the numbers differ.
pub(crate) fn check_rows(table: &ScanSource, replica: &ScanSource) -> Result<()> {
    let (name, of) = (&replica.name, &table.name);
    let has_new_rows = |source: &ScanSource| {
        let changes = source.table.table().changes();
        let mut counts = changes.files.iter().flatten().map(|changes| changes.counts());
        changes.inserted.is_some() || counts.any(|counts| counts.patched > 0 || counts.inserted > 0)
    };
    if has_new_rows(table) || has_new_rows(replica) {
        return plan_err!(
            "replica {name} does not have the changes of table {of}: write it again, or leave it out"
        );
    }
    let (expected, actual) = (row_count(table), row_count(replica));
    if expected == actual {
        return Ok(());
    }
    plan_err!(
        "replica {name} has {actual} rows and table {of} has {expected}; a replica has the same rows: write it again, \
         or leave it out"
    )
}

/// The columns of a table that are not columns of directories, in the order of the table.
pub(crate) fn stored_fields(table: &Schema, directories: &[FieldRef]) -> Schema {
    let is_stored =
        |field: &&FieldRef| directories.iter().all(|directory| directory.name() != field.name());
    Schema::new(table.fields().iter().filter(is_stored).cloned().collect::<Vec<_>>())
}

/// Replaces fields by those of the table with the same names. Other fields stay.
pub(crate) fn fields_of(table: &Schema, fields: &[FieldRef]) -> Vec<FieldRef> {
    let of_table = |field: &FieldRef| table.fields().find(field.name()).map(|(_, field)| field);
    fields.iter().map(|field| Arc::clone(of_table(field).unwrap_or(field))).collect()
}

/// Whether a schema has the name of a field.
pub(crate) fn has(schema: &Schema, field: &FieldRef) -> bool {
    schema.index_of(field.name()).is_ok()
}

fn row_count(source: &ScanSource) -> u64 {
    let table = source.table.table();
    table.visible_rows(0..table.layout().row_count())
}

/// Whether a file stores a column or is in a directory of it. A declared column may be in no file. It is then NULL.
fn is_stored(table: &ParquetTable, column: &str) -> bool {
    let Ok(index) = table.schema().index_of(column) else { return false };
    let mut files = 0..table.parquet_files().len();
    is_constant(table, column) || files.any(|file| table.file_column(file, index).is_some())
}

fn is_constant(table: &ParquetTable, column: &str) -> bool {
    table.constants().iter().any(|constant| constant.field.name() == column)
}

/// Replaces types of strings and binaries that differ only in their layout in memory by one type.
fn logical(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => logical(values),
        DataType::LargeUtf8 | DataType::Utf8View => &DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => &DataType::Binary,
        data_type => data_type,
    }
}
