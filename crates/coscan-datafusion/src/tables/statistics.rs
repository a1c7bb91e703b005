//! Statistics for the optimizer. They equal those that plain DataFusion takes from the same footers, so that plans are
//! the same.

use std::sync::Arc;

use coscan_storage::table::{ParquetTable, widens};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::error::Result;
use datafusion_datasource::compute_all_files_statistics;
use datafusion_datasource_parquet::metadata::DFParquetMetadata;

/// All files as one group, each with the statistics of its footer, and the statistics of all.
pub(crate) fn of_table(table: &ParquetTable) -> Result<(FileGroup, Statistics)> {
    let stored = stored_columns(table);
    let mut files = Vec::with_capacity(table.parquet_files().len());
    for (index, file) in table.parquet_files().iter().enumerate() {
        let constants = stored.fields().len()..table.schema().fields().len();
        let value = |column| ScalarValue::try_from_array(&table.repeated_value(index, column), 0);
        let values = constants.map(value).collect::<Result<Vec<_>>>()?;
        let statistics = of_file(table, index, &stored)?;
        let file = PartitionedFile::new_from_meta(file.file().meta.clone());
        files.push(file.with_partition_values(values).with_statistics(Arc::new(statistics)));
    }
    let groups = vec![FileGroup::new(files)];
    let schema = Arc::clone(table.schema());
    let (mut groups, statistics) = compute_all_files_statistics(groups, schema, true, false)?;
    Ok((groups.pop().unwrap_or_default(), statistics))
}

/// The columns that are stored in files.
pub(crate) fn stored_columns(table: &ParquetTable) -> SchemaRef {
    let fields = table.schema().fields();
    let stored = &fields[..fields.len() - table.constants().len()];
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
    let file_field = |(field, other): (&FieldRef, &Option<DataType>)| -> Field {
        let field = field.as_ref().clone();
        other.clone().map_or(field.clone(), |other| field.with_data_type(other))
    };
    let file_fields: Vec<_> = stored.fields().iter().zip(&other_types).map(file_field).collect();
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
