//! What the optimizer knows of a table: exactly what the plain engine takes from the same footers, so that it makes the
//! same plans.

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

/// The columns that are read of files.
pub(crate) fn stored_columns(table: &ParquetTable) -> SchemaRef {
    let fields = table.schema().fields();
    let stored = &fields[..fields.len() - table.constants().len()];
    Arc::new(Schema::new(stored.to_vec()))
}

/// Of the stored columns of a file. The engine takes them wrongly from columns that have another type in the file: it
/// is told that type, and the answer is cast.
fn of_file(table: &ParquetTable, index: usize, stored: &SchemaRef) -> Result<Statistics> {
    let file = &table.parquet_files()[index];
    let own_type = |(column, field): (usize, &FieldRef)| -> Option<DataType> {
        let in_file = table.file_column(index, column)?;
        let own = file.fields()[in_file].data_type();
        (own != field.data_type()).then(|| own.clone())
    };
    let own_types: Vec<_> = stored.fields().iter().enumerate().map(own_type).collect();
    let own_field = |(field, own): (&FieldRef, &Option<DataType>)| -> Field {
        let field = field.as_ref().clone();
        own.clone().map_or(field.clone(), |own| field.with_data_type(own))
    };
    let own_fields: Vec<_> = stored.fields().iter().zip(&own_types).map(own_field).collect();
    let own_schema = Arc::new(Schema::new(own_fields));
    let mut statistics =
        DFParquetMetadata::statistics_from_parquet_metadata(file.metadata(), &own_schema)?;
    for ((column, field), own) in
        statistics.column_statistics.iter_mut().zip(stored.fields()).zip(&own_types)
    {
        if let Some(own) = own {
            *column = cast(column, own, field.data_type());
        }
    }
    Ok(statistics)
}

/// What is known of a column when its values have another type.
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
