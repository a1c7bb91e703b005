//! Statistics for the optimizer. They equal those that plain DataFusion takes from the same footers, so that plans are
//! the same.

use std::sync::Arc;

use coscan_storage::table::{FileChanges, ParquetTable, widens};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::error::Result;
use datafusion_datasource::compute_all_files_statistics;
use datafusion_datasource_parquet::metadata::DFParquetMetadata;

/// A name that no column has.
const NO_COLUMN: &str = "\0";

/// All files as one group, each with the statistics of its footer, and the statistics of all.
pub(crate) fn of_table(table: &ParquetTable) -> Result<(FileGroup, Statistics)> {
    let stored = stored_columns(table);
    let mut files = Vec::with_capacity(table.stored_files().len());
    for (index, file) in table.stored_files().iter().enumerate() {
        let constants = stored.fields().len()..stored.fields().len() + table.constants().len();
        let value = |column| ScalarValue::try_from_array(&table.repeated_value(index, column), 0);
        let values = constants.map(value).collect::<Result<Vec<_>>>()?;
        let changes = table.file_changes(index);
        let statistics = changed(of_file(table, index, &stored)?, changes);
        let file = PartitionedFile::new_from_meta(file.file().meta.clone());
        let file = file.with_partition_values(values).with_statistics(Arc::new(statistics));
        let mut file = with_constants(file, changes.is_some());
        if let Some(statistics) = &mut file.statistics
            && table.row_number_column().is_some()
        {
            let columns = &mut Arc::make_mut(statistics).column_statistics;
            columns.push(ColumnStatistics::new_unknown());
        }
        files.push(file);
    }
    let groups = vec![FileGroup::new(files)];
    let schema = Arc::clone(table.schema());
    let (mut groups, statistics) = compute_all_files_statistics(groups, schema, true, false)?;
    Ok((groups.pop().unwrap_or_default(), statistics))
}

/// The statistics of a file with those of its constant columns. The engine's say that no constant is NULL, and that the
/// file has rows.
fn with_constants(mut file: PartitionedFile, is_changed: bool) -> PartitionedFile {
    if let Some(statistics) = &mut file.statistics {
        let statistics = Arc::make_mut(statistics);
        let stored = statistics.column_statistics.len() - file.partition_values.len();
        let constants = statistics.column_statistics[stored..].iter_mut();
        for (column, value) in constants.zip(&file.partition_values) {
            if value.is_null() {
                let null_count = statistics.num_rows;
                *column = ColumnStatistics { null_count, ..ColumnStatistics::new_unknown() };
            } else if is_changed {
                *column = column.clone().to_inexact();
            }
        }
    }
    file
}

/// The statistics of a file with changes. The number of its rows is known, but its bounds may be those of rows that are
/// gone.
fn changed(statistics: Statistics, changes: Option<&Arc<FileChanges>>) -> Statistics {
    let Some(changes) = changes else { return statistics };
    let rows = usize::try_from(changes.visible_rows()).unwrap_or(usize::MAX);
    let num_rows = statistics.num_rows.map(|_| rows);
    let counts = changes.counts();
    if counts.patched > 0 || counts.inserted > 0 {
        let unknown = vec![ColumnStatistics::new_unknown(); statistics.column_statistics.len()];
        return Statistics { num_rows, column_statistics: unknown, ..statistics.to_inexact() };
    }
    Statistics { num_rows, ..statistics.to_inexact() }
}

/// The statistics of a table after changes, from those of its files. Estimates stay, but nothing is exact except the
/// number of rows.
pub(crate) fn of_changed(statistics: &Statistics, table: &ParquetTable) -> Statistics {
    let rows = table.visible_rows(0..table.layout().row_count());
    let num_rows = Precision::Exact(usize::try_from(rows).unwrap_or(usize::MAX));
    Statistics { num_rows, ..statistics.clone().to_inexact() }
}

/// The columns that are stored in files.
pub(crate) fn stored_columns(table: &ParquetTable) -> SchemaRef {
    let fields = table.schema().fields();
    let own = table.constants().len() + usize::from(table.row_number_column().is_some());
    let stored = &fields[..fields.len() - own];
    Arc::new(Schema::new(stored.to_vec()))
}

/// The statistics of the stored columns of a file. Where a column has another type in the file than in the table, the
/// statistics are taken by the type in the file and cast, as in the engine.
fn of_file(table: &ParquetTable, index: usize, stored: &SchemaRef) -> Result<Statistics> {
    let file = &table.parquet_files()[index];
    let other_type = |(column, field): (usize, &FieldRef)| -> Option<DataType> {
        let in_file = table.file_column(index, column)?;
        let file_type = file.fields()[in_file].data_type();
        (file_type != field.data_type()).then(|| file_type.clone())
    };
    let other_types: Vec<_> = stored.fields().iter().enumerate().map(other_type).collect();
    let file_field = |(column, field): (usize, &FieldRef)| -> Field {
        let field = field.as_ref().clone();
        match table.file_column(index, column).map(|in_file| &file.fields()[in_file]) {
            Some(stored) => {
                field.with_name(stored.name()).with_data_type(stored.data_type().clone())
            }
            // The file may have another column of this name.
            None if table.mapping().is_some() => field.with_name(NO_COLUMN),
            None => field,
        }
    };
    let file_fields: Vec<_> = stored.fields().iter().enumerate().map(file_field).collect();
    let file_schema = Arc::new(Schema::new(file_fields));
    let mut statistics =
        DFParquetMetadata::statistics_from_parquet_metadata(file.metadata(), &file_schema)?;
    for ((column, field), other) in
        statistics.column_statistics.iter_mut().zip(stored.fields()).zip(&other_types)
    {
        if let Some(other) = other {
            *column = cast(column, other, field.data_type());
        }
    }
    Ok(statistics)
}

/// The statistics of a column after a cast of its values.
fn cast(column: &ColumnStatistics, from: &DataType, to: &DataType) -> ColumnStatistics {
    let unknown =
        ColumnStatistics { null_count: column.null_count, ..ColumnStatistics::new_unknown() };
    if !widens(from, to) || to.is_nested() {
        return unknown;
    }
    let bound = |bound: &Precision<ScalarValue>| bound.cast_to(to).unwrap_or(Precision::Absent);
    ColumnStatistics {
        min_value: bound(&column.min_value),
        max_value: bound(&column.max_value),
        distinct_count: column.distinct_count,
        ..unknown
    }
}
