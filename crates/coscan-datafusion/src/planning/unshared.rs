//! Direct scans: the engine's own scans, which share nothing. EXPLAIN shows them as `DataSourceExec`.
//!
//! If a scan is so selective that sharing whole chunks costs more than it gains, a direct scan reads only the data
//! pages that the page index leaves. The bytes that it would read are computed in advance from the footers that the
//! table holds. Sessions with `coscan.sharing = false` use direct scans only, except for tables in several stores.

use std::sync::Arc;

use coscan_storage::table::ParquetTable;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::common::config::ParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::memory_pool::human_readable_size;
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::TableSchema;
use datafusion_datasource_parquet::ParquetAccessPlan;
use object_store::memory::InMemory;

use crate::planning::nan::{conjuncts_without, undecided};
use crate::planning::plain_source::not_shared;
use crate::planning::pruning::NeededChunks;
use crate::planning::selectivity::{is_worth_direct_scan, may_be_selective};
use crate::planning::unshared_bytes::{direct_bytes, page_plans, row_group_plans, stored_bytes};
use crate::planning::unshared_reader::DirectReaders;
use crate::settings::NotShared;
use crate::tables::format::set_column_types;
use crate::tables::source::ScanSource;
use crate::tables::statistics::stored_columns;

/// The required output of a scan.
pub(crate) struct ScanRequirements<'a> {
    /// The columns as indexes into the table's schema.
    pub(crate) projection: &'a [usize],
    /// The filters on the table's schema.
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
    let Some(cheaper) = if_cheaper(session, source, requirements) else { return Ok(None) };
    let [direct, shared] = [cheaper.direct_bytes, cheaper.shared_bytes]
        .map(|bytes| human_readable_size(usize::try_from(bytes).unwrap_or(usize::MAX)));
    let files = with_plans(source, cheaper.plans);
    let groups = files.into_iter().map(|file| FileGroup::new(vec![file])).collect();
    let plan = scan(session, source, requirements, groups, Pruning::Done)?;
    Ok(Some(not_shared(plan, &format!("selective ({direct} of {shared})"))))
}

/// A scan of the engine that reads much less than a shared one.
pub(crate) struct CheaperScan {
    /// The stored bytes that it reads.
    pub(crate) direct_bytes: u64,
    /// The stored bytes that a shared scan reads.
    shared_bytes: u64,
    plans: Vec<(usize, ParquetAccessPlan)>,
}

/// The engine's own scan, if it reads much less.
pub(crate) fn if_cheaper(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
) -> Option<CheaperScan> {
    let ScanRequirements { projection, filters, needed, .. } = *requirements;
    let table = source.table.table();
    let is_candidate = source.direct_bytes_max > 0 && may_be_selective(needed.chunks.len());
    let has_page_index = session.default_table_options().parquet.global.enable_page_index;
    if !is_candidate || !has_page_index || !is_for_engine(table) {
        return None;
    }
    // The engine does not consider that bounds leave NaN out.
    let undecided: Vec<_> =
        undecided(table, filters, &[], &needed.chunks).iter().map(|(column, _)| *column).collect();
    let decided = conjuncts_without(filters, &undecided);
    let plans = page_plans(table, needed, &conjunction_opt(decided)?);
    let direct_bytes = direct_bytes(table, projection, &plans);
    let shared_bytes = stored_bytes(table, projection, &needed.rows_in(table, &needed.chunks));
    is_worth_direct_scan(direct_bytes, shared_bytes, source.direct_bytes_max)
        .then_some(CheaperScan { direct_bytes, shared_bytes, plans })
}

/// The engine's own scan, in the session's target number of partitions. `None` if the engine cannot read the table by
/// itself, or no chunk is needed.
pub(crate) fn plan_direct(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
    reason: NotShared,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !is_for_engine(source.table.table()) {
        return Ok(None);
    }
    let files = with_plans(source, row_group_plans(source.table.table(), requirements.needed));
    if files.is_empty() {
        return Ok(None);
    }
    let groups = FileGroup::new(files).split_files(session.config().target_partitions());
    let plan = scan(session, source, requirements, groups, Pruning::ByEngine)?;
    Ok(Some(not_shared(plan, reason.reason())))
}

/// The component that rules out row groups and data pages of a scan of the engine.
enum Pruning {
    /// The plans of the files are pruned already.
    Done,
    /// The engine prunes further, by the settings of the session.
    ByEngine,
}

fn scan(
    session: &dyn Session,
    source: &ScanSource,
    requirements: &ScanRequirements<'_>,
    groups: Vec<FileGroup>,
    pruning: Pruning,
) -> Result<Arc<dyn ExecutionPlan>> {
    let table = source.table.table();
    let mut options = session.default_table_options().parquet;
    set_types_of_table(table, &mut options.global);
    // Planning has applied Bloom filters already, if the session uses any.
    options.global.bloom_filter_on_read = false;
    if matches!(pruning, Pruning::Done) {
        options.global.pruning = false;
        options.global.enable_page_index = false;
    }
    let constants = table.constants().iter().map(|constant| Arc::clone(&constant.field));
    let columns = TableSchema::builder(stored_columns(table))
        .with_table_partition_cols(constants.collect::<Vec<_>>())
        .build();
    let parquet = ParquetSource::new(columns)
        .with_table_parquet_options(options)
        .with_parquet_file_reader_factory(Arc::new(DirectReaders));
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

/// Whether the engine's scan can read the table: it finds a file by its path alone and columns by their names, and knows
/// of no changes.
fn is_for_engine(table: &ParquetTable) -> bool {
    let has_own_rows = table.is_changed() || table.inserted_file().is_some();
    if has_own_rows || table.row_number_column().is_some() || table.mapping().is_some() {
        return false;
    }
    let mut urls = table.stored_files().iter().map(|file| file.version().store_url());
    urls.next().is_some_and(|first| urls.all(|url| url == first))
}

/// The URL of a store that is never read. The engine looks up the store of a scan by URL, although this scan reads
/// through the table's own store. That store is not registered with the session, because other sessions with the same
/// registry could then read with the table's credentials.
fn unused_store(session: &dyn Session) -> Result<ObjectStoreUrl> {
    let url = ObjectStoreUrl::parse("coscan://tables/")?;
    let registry = &session.runtime_env().object_store_registry;
    if registry.get_store(url.as_ref()).is_err() {
        registry.register_store(url.as_ref(), Arc::new(InMemory::new()));
    }
    Ok(url)
}

/// Opened files for the engine, each with its plan.
fn with_plans(source: &ScanSource, plans: Vec<(usize, ParquetAccessPlan)>) -> Vec<PartitionedFile> {
    let opened = source.table.table().parquet_files();
    let file = |(file, plan): (usize, ParquetAccessPlan)| {
        source.files[file].clone().with_extension(plan).with_extension(Arc::clone(&opened[file]))
    };
    plans.into_iter().map(file).collect()
}
