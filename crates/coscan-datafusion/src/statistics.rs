//! What the optimizer knows of a table: exactly what the plain engine takes from the same footers, so that it makes the
//! same plans.

use std::sync::Arc;

use coscan_storage::table::ParquetTable;
use datafusion::common::Statistics;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::error::Result;
use datafusion_datasource::compute_all_files_statistics;
use datafusion_datasource_parquet::metadata::DFParquetMetadata;

/// All files as one group, each with the statistics of its footer, and the statistics of all.
pub(crate) fn of_table(table: &ParquetTable) -> Result<(FileGroup, Statistics)> {
    let mut files = Vec::with_capacity(table.parquet_files().len());
    for file in table.parquet_files() {
        let (metadata, schema) = (file.metadata(), table.schema());
        let statistics = DFParquetMetadata::statistics_from_parquet_metadata(metadata, schema)?;
        let file = PartitionedFile::new_from_meta(file.file().meta.clone());
        files.push(file.with_statistics(Arc::new(statistics)));
    }
    let groups = vec![FileGroup::new(files)];
    let schema = Arc::clone(table.schema());
    let (mut groups, statistics) = compute_all_files_statistics(groups, schema, true, false)?;
    Ok((groups.pop().unwrap_or_default(), statistics))
}
