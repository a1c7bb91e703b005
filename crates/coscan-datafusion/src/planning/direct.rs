//! Direct scans: the engine's own scans, which share nothing. EXPLAIN shows them as `DataSourceExec`.
//!
//! If a scan is so selective that sharing whole chunks costs more than it gains, a direct scan reads only the data
//! pages that the page index leaves. The bytes that it would read are computed in advance from the footers that the
//! table holds. Sessions with `coscan.sharing = false` use direct scans only, except for tables in several stores.

use std::ops::Range;
use std::sync::Arc;

use coscan_storage::table::{ParquetFile, ParquetTable};
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::config::ParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfigBuilder, ParquetFileMetrics, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::memory_pool::human_readable_size;
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource::TableSchema;
use datafusion_datasource_parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, RowGroupAccess,
};
use object_store::memory::InMemory;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use crate::planning::direct_reader::DirectReaders;
use crate::planning::plain_source::not_shared;
use crate::planning::pruning::NeededChunks;
use crate::planning::selectivity::{is_worth_direct_scan, may_be_selective};
use crate::tables::format::set_column_types;
use crate::tables::source::ScanSource;
use crate::tables::statistics::stored_columns;

/// The required output of a scan.
pub(crate) struct ScanRequirements<'a> {
    /// Columns, as indexes into the table's schema.
    pub(crate) projection: &'a [usize],
    /// On the table's schema.
    pub(crate) filters: &'a [Arc<dyn PhysicalExpr>],
    /// The chunks that the filters leave.
    pub(crate) needed: &'a NeededChunks,
    pub(crate) fetch: Option<usize>,
}

/// The engine's own scan, if it costs much less than a shared one.
pub(crate) fn plan_if_cheaper(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(bytes) = bytes_if_cheaper(session, source, requirements) else { return Ok(None) };
    let files = needed_files(source, requirements.needed);
    let groups = files.into_iter().map(|file| FileGroup::new(vec![file])).collect();
    let plan = scan(session, source, requirements, groups)?;
    let [direct, shared] = [bytes.direct, bytes.shared]
        .map(|bytes| human_readable_size(usize::try_from(bytes).unwrap_or(usize::MAX)));
    Ok(Some(not_shared(plan, &format!("selective ({direct} of {shared})"))))
}

/// Stored bytes that two kinds of scan read.
pub(crate) struct StoredBytes {
    /// The engine's own scan, at most.
    pub(crate) direct: u64,
    /// A shared scan.
    pub(crate) shared: u64,
}

/// What both kinds of scan read, if the engine's own reads much less.
pub(crate) fn bytes_if_cheaper(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
) -> Option<StoredBytes> {
    let table = source.table.table();
    let is_candidate =
        source.direct_bytes_max > 0 && may_be_selective(requirements.needed.chunks.len());
    if !is_candidate || !is_in_one_store(table) {
        return None;
    }
    let predicate = conjunction_opt(requirements.filters.iter().cloned())?;
    if !session.default_table_options().parquet.global.enable_page_index {
        return None;
    }
    let direct = direct_bytes(table, requirements, &predicate);
    let needed_rows = requirements.needed.rows_in(table, &requirements.needed.chunks);
    let shared = stored_bytes(table, requirements.projection, &needed_rows);
    is_worth_direct_scan(direct, shared, source.direct_bytes_max)
        .then_some(StoredBytes { direct, shared })
}

/// The engine's own scan, in the session's target number of partitions; `None` if the files are in several stores, or
/// no chunk is needed.
pub(crate) fn plan_direct(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let files = needed_files(source, requirements.needed);
    if files.is_empty() || !is_in_one_store(source.table.table()) {
        return Ok(None);
    }
    let groups = FileGroup::new(files).split_files(session.config().target_partitions());
    let plan = scan(session, source, requirements, groups)?;
    Ok(Some(not_shared(plan, "coscan.sharing is false")))
}

fn scan(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
    groups: Vec<FileGroup>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let table = source.table.table();
    let mut options = session.default_table_options().parquet;
    set_types_of_table(table, &mut options.global);
    // Planning has applied them already, if the session uses any.
    options.global.bloom_filter_on_read = false;
    let constants = table.constants().iter().map(|constant| Arc::clone(&constant.field));
    let columns = TableSchema::builder(stored_columns(table))
        .with_table_partition_cols(constants.collect::<Vec<_>>())
        .build();
    let parquet = ParquetSource::new(columns)
        .with_table_parquet_options(options)
        .with_parquet_file_reader_factory(Arc::new(DirectReaders::new(Arc::clone(table))));
    let statistics = match session.config().collect_statistics() {
        true => source.statistics.as_ref().clone(),
        false => Statistics::new_unknown(table.schema()),
    };
    let config = FileScanConfigBuilder::new(unused_store(session)?, Arc::new(parquet))
        .with_file_groups(groups)
        .with_statistics(statistics)
        .with_projection_indices(Some(requirements.projection.to_vec()))?
        .with_limit(requirements.fetch)
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

/// Makes the engine read columns as the types that the table was opened with, whatever the session says.
fn set_types_of_table(table: &ParquetTable, options: &mut ParquetOptions) {
    if let Some(file) = table.parquet_files().first() {
        set_column_types(options, file.options().types);
    }
}

/// Whether all files are in one store: the engine's scan asks for a file by its path alone.
fn is_in_one_store(table: &ParquetTable) -> bool {
    let mut urls = table.parquet_files().iter().map(|file| file.version().store_url());
    urls.next().is_some_and(|first| urls.all(|url| url == first))
}

/// The URL of a store that is never read. The engine looks up the store of a scan by URL, though this scan reads
/// through the table's own store. That one is not registered with the session: other sessions with the same registry
/// could then read with the table's credentials.
fn unused_store(session: &dyn Session) -> Result<ObjectStoreUrl> {
    let url = ObjectStoreUrl::parse("coscan://tables/")?;
    let registry = &session.runtime_env().object_store_registry;
    if registry.get_store(url.as_ref()).is_err() {
        registry.register_store(url.as_ref(), Arc::new(InMemory::new()));
    }
    Ok(url)
}

/// The files that hold needed rows, each with an access plan of the row groups that hold them.
fn needed_files(source: &ScanSource, needed: &NeededChunks) -> Vec<PartitionedFile> {
    let row_groups = needed_row_groups(source.table.table(), needed).into_iter();
    row_groups.map(|(file, plan)| source.files[file].clone().with_extension(plan)).collect()
}

/// The files that hold needed rows, as positions in the table, and for each the row groups that hold them.
fn needed_row_groups(
    table: &ParquetTable,
    needed: &NeededChunks,
) -> Vec<(usize, ParquetAccessPlan)> {
    let rows = needed.rows_in(table, &needed.chunks);
    let mut start = 0;
    let plans = table.parquet_files().iter().enumerate().map(|(index, file)| {
        let plan = row_groups_with(file.metadata(), start, &rows);
        start += file.row_count();
        (index, plan)
    });
    plans.filter(|(_, plan)| !plan.row_group_indexes().is_empty()).collect()
}

/// Stored bytes of the pages that hold some rows of some columns.
pub(crate) fn stored_bytes(table: &ParquetTable, projection: &[usize], rows: &[Range<u64>]) -> u64 {
    let mut groups: Vec<_> =
        projection.iter().map(|&column| table.group_of_column(column)).collect();
    groups.sort_unstable();
    groups.dedup();
    let pages = table.pages_for(&groups, rows);
    pages.into_iter().map(|page| table.layout().bytes_of(page)).sum()
}

/// Stored bytes of the data pages that the engine reads: an upper bound.
fn direct_bytes(
    table: &ParquetTable,
    requirements: &ScanRequirements<'_>,
    predicate: &Arc<dyn PhysicalExpr>,
) -> u64 {
    let filter = PagePruningAccessPlanFilter::new(predicate, Arc::clone(table.schema()));
    let mut bytes = 0;
    for (index, plan) in needed_row_groups(table, requirements.needed) {
        let file = &table.parquet_files()[index];
        let in_file = |&column: &usize| table.file_column(index, column);
        let projection: Vec<_> = requirements.projection.iter().filter_map(in_file).collect();
        let plan = match has_types_of_table(table, index) {
            true => pruned(&filter, plan, table, file),
            // The page index has other types than the filter: all pages count.
            false => plan,
        };
        bytes += plan_bytes(file.metadata(), &plan, &projection);
    }
    bytes
}

/// The data pages that the page index of a file leaves.
fn pruned(
    filter: &PagePruningAccessPlanFilter,
    plan: ParquetAccessPlan,
    table: &ParquetTable,
    file: &ParquetFile,
) -> ParquetAccessPlan {
    let metrics = ExecutionPlanMetricsSet::new();
    let metrics = ParquetFileMetrics::new(0, file.version().path().as_ref(), &metrics);
    let metadata = file.metadata();
    let descriptor = metadata.file_metadata().schema_descr();
    filter.prune_plan_with_page_index(plan, table.schema(), descriptor, metadata, &metrics)
}

/// Whether the columns of a file have the types that they have in the table.
fn has_types_of_table(table: &ParquetTable, index: usize) -> bool {
    let fields = table.parquet_files()[index].fields();
    table.schema().fields().iter().enumerate().all(|(column, field)| {
        let in_file = table.file_column(index, column);
        in_file.is_none_or(|in_file| fields[in_file].data_type() == field.data_type())
    })
}

/// The row groups of a file that hold any of these rows, which count from the start of the table, as `start` does: the
/// first row of the file.
fn row_groups_with(
    metadata: &ParquetMetaData,
    mut start: u64,
    rows: &[Range<u64>],
) -> ParquetAccessPlan {
    let mut plan = ParquetAccessPlan::new_none(metadata.num_row_groups());
    for (index, row_group) in metadata.row_groups().iter().enumerate() {
        let end = start + row_group.num_rows().cast_unsigned();
        if rows.iter().any(|rows| rows.start < end && start < rows.end) {
            plan.scan(index);
        }
        start = end;
    }
    plan
}

/// Stored bytes that a plan reads of some top-level columns of a file.
fn plan_bytes(metadata: &ParquetMetaData, plan: &ParquetAccessPlan, projection: &[usize]) -> u64 {
    let descriptor = metadata.file_metadata().schema_descr();
    let leaves: Vec<_> = (0..descriptor.num_columns())
        .filter(|&leaf| projection.contains(&descriptor.get_column_root_idx(leaf)))
        .collect();
    let mut bytes = 0;
    for (index, access) in plan.inner().iter().enumerate() {
        let row_group = metadata.row_group(index);
        for &leaf in &leaves {
            let column = row_group.column(leaf);
            bytes += match access {
                RowGroupAccess::Skip => 0,
                RowGroupAccess::Scan => column.byte_range().1,
                RowGroupAccess::Selection(selection) => {
                    let locations = metadata
                        .offset_index()
                        .and_then(|index_of| index_of.get(index)?.get(leaf))
                        .map(|column| column.page_locations());
                    locations.map_or(column.byte_range().1, |locations| {
                        let ranges = selection.scan_ranges(locations);
                        let pages: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                        pages + dictionary_bytes(column, locations.first().map(|page| page.offset))
                    })
                }
            };
        }
    }
    bytes
}

/// Bytes before the first data page of a column.
fn dictionary_bytes(column: &ColumnChunkMetaData, first_page_offset: Option<i64>) -> u64 {
    let first = first_page_offset.map_or(0, i64::cast_unsigned);
    first.saturating_sub(column.byte_range().0)
}
