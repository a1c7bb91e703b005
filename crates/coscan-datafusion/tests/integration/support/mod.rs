//! Helpers of the tests: small Parquet files of many chunks, sessions, and rows as text.

pub(crate) mod one_by_one;
pub(crate) mod slt;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use coscan_core::SplitMix64;
use coscan_datafusion::{
    CoscanOptions, ManagedStatement, SharedTableProvider, run_managed_statement,
};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{DirectFileStore, MeteredStore, StoreMetrics, Stores};
use coscan_storage::table::{ColumnTypes, FileOptions, PageLayout};
use coscan_testing::parquet_file;
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::ObjectStore;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use url::Url;

/// The number of rows of a chunk, and of a row group, in the files of tests.
pub(crate) const CHUNK_ROWS: u64 = 100;

/// Options for small chunks.
pub(crate) const TABLE_OPTIONS: FileOptions =
    FileOptions { chunk_rows: CHUNK_ROWS, layout: PageLayout::Column, types: ColumnTypes::USUAL };

/// Writes `id` (0 to `rows`), `key` (`id % 10`), `value` (a half of `id`) and `text`, a row group a chunk.
pub(crate) fn write_numbers(path: &Path, ids: Range<i64>) {
    write(path, &numbers(ids), CHUNK_ROWS as usize);
}

/// A directory with `numbers.parquet`, as [`write_numbers`] makes it.
pub(crate) fn numbers_directory(rows: i64) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    write_numbers(&data.path().join("numbers.parquet"), 0..rows);
    data
}

/// The rows of [`write_numbers`].
pub(crate) fn numbers(ids: Range<i64>) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids.clone().collect::<Int64Array>())),
        ("key", Arc::new(ids.clone().map(|id| id % 10).collect::<Int64Array>())),
        ("value", Arc::new(ids.clone().map(|id| id as f64 / 2.0).collect::<Float64Array>())),
        ("text", Arc::new(ids.map(|id| Some(format!("text {id}"))).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Writes a file as [`file_of`] makes it.
pub(crate) fn write(path: &Path, batch: &RecordBatch, group_rows: usize) {
    std::fs::write(path, file_of(batch, group_rows)).unwrap();
}

/// A file of a batch in row groups of some rows, with data pages of a twentieth of them.
pub(crate) fn file_of(batch: &RecordBatch, group_rows: usize) -> Vec<u8> {
    let page_rows = (group_rows / 20).max(1);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .set_dictionary_enabled(false)
        .build();
    parquet_file(std::slice::from_ref(batch), properties)
}

/// A manager with room for everything.
pub(crate) fn manager(policy: PolicyKind) -> BufferManager {
    BufferManager::new(Options::with_pool_bytes(64 << 20, 256 << 20).policy(policy)).unwrap()
}

/// Takes as much memory as possible for an operator, and returns it, so that everything unused is dropped.
pub(crate) fn drop_unused(manager: &BufferManager) {
    let (memory, mut bytes) = (manager.operator_memory(), manager.options().memory_bytes);
    while !memory.try_take(bytes) {
        bytes -= 4096;
    }
    memory.give(bytes);
}

/// A session of four partitions without coscan.
pub(crate) fn plain() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4))
}

/// A session of four partitions with coscan, in which every scan is shared.
pub(crate) fn shared(manager: &BufferManager) -> SessionContext {
    let context = plain();
    let coscan =
        CoscanOptions::new(manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
    coscan.install(&context).unwrap();
    context
}

/// Shares no results in a session, so that every query reads and decodes what it needs.
pub(crate) async fn share_no_results(context: &SessionContext) {
    run(context, "SET coscan.share_results = false").await;
}

/// Stores whose local files are those of this store, and the metrics of reads from them.
pub(crate) fn counted(files: impl ObjectStore) -> (Stores, Arc<StoreMetrics>) {
    let metrics = StoreMetrics::new();
    let metered = MeteredStore::new(Arc::new(files), Arc::clone(&metrics));
    let stores = Stores::new();
    stores.register(&Url::parse("file:///").unwrap(), Arc::new(metered));
    (stores, metrics)
}

/// A session in which every scan is shared, and table `numbers` has chunks of 100 rows, one after another.
pub(crate) async fn numbers_table(rows: i64) -> (TempDir, BufferManager, SessionContext) {
    numbers_table_of(manager(PolicyKind::Relevance), rows).await
}

/// Does the same as [`numbers_table`] with this manager.
pub(crate) async fn numbers_table_of(
    manager: BufferManager,
    rows: i64,
) -> (TempDir, BufferManager, SessionContext) {
    let data = numbers_directory(rows);
    let context = shared(&manager);
    create(&context, "numbers", data.path()).await;
    (data, manager, context)
}

/// The numbers of the first column, sorted.
pub(crate) fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let mut ids: Vec<_> = batches.iter().flat_map(ids_of).collect();
    ids.sort_unstable();
    ids
}

/// The numbers of the first column.
pub(crate) fn ids_of(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

/// A session in which table `numbers` has ten chunks of 10 000 rows, in row groups of `group_rows`, and the metrics of
/// reads from it. `adjust` changes the installed options.
pub(crate) async fn metered(
    location: &Path,
    group_rows: usize,
    adjust: impl FnOnce(CoscanOptions) -> CoscanOptions,
) -> (SessionContext, Arc<StoreMetrics>) {
    write(&location.join("numbers.parquet"), &numbers(0..100_000), group_rows);
    let (stores, metrics) = counted(DirectFileStore::new());
    let options = FileOptions { chunk_rows: 10_000, ..FileOptions::default() };
    let coscan = CoscanOptions::new(&manager(PolicyKind::Relevance)).with_stores(stores);
    let context = plain();
    adjust(coscan.with_table_options(options)).install(&context).unwrap();
    create(&context, "numbers", location).await;
    metrics.reset();
    (context, metrics)
}

/// Creates table `name` from a location.
pub(crate) async fn create(context: &SessionContext, name: &str, location: &Path) {
    create_with(context, name, "", location).await;
}

/// Does the same as [`create`] for files in this order.
pub(crate) async fn create_ordered(
    context: &SessionContext,
    name: &str,
    order: &str,
    location: &Path,
) {
    create_with(context, name, &format!("WITH ORDER ({order})"), location).await;
}

async fn create_with(context: &SessionContext, name: &str, clause: &str, location: &Path) {
    let location = location.display();
    let create = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET {clause}");
    run(context, &format!("{create} LOCATION '{location}'")).await;
}

pub(crate) async fn set_partitions(context: &SessionContext, partitions: usize) {
    run(context, &format!("SET datafusion.execution.target_partitions = {partitions}")).await;
}

/// Runs a query and returns its rows as text, in their order.
pub(crate) async fn run(context: &SessionContext, sql: &str) -> Vec<String> {
    slt::run(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The rows of a query, sorted.
pub(crate) async fn sorted(context: &SessionContext, sql: &str) -> Vec<String> {
    let mut rows = run(context, sql).await;
    rows.sort_unstable();
    rows
}

/// Executes a statement as a shell does, which may be one of a database.
pub(crate) async fn execute(context: &SessionContext, sql: &str) -> Result<()> {
    let state = context.state();
    let statement = state.sql_to_statement(sql, &state.config().options().sql_parser.dialect)?;
    if let ManagedStatement::Plan(plan) = run_managed_statement(context, statement).await? {
        context.execute_logical_plan(plan).await?.collect().await?;
    }
    Ok(())
}

/// The text of EXPLAIN or EXPLAIN ANALYZE.
pub(crate) async fn explain(context: &SessionContext, sql: &str) -> String {
    run(context, sql).await.join("\n")
}

/// The physical plan of a query.
pub(crate) async fn plan(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// The first leaf of a plan.
pub(crate) fn leaf(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.children().first() {
        Some(child) => leaf(child),
        None => Arc::clone(plan),
    }
}

/// The number of partitions of a plan.
pub(crate) fn partitions(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.output_partitioning().partition_count()
}

/// A metric of EXPLAIN ANALYZE, summed over partitions.
pub(crate) fn metric(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    plan.metrics().unwrap().sum_by_name(name).unwrap_or_else(|| panic!("no {name}")).as_usize()
}

/// The numbers of what is to be tried: those of an environment variable such as `0..300`, if it is set.
pub(crate) fn range_of(variable: &str, usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var(variable) else { return usual };
    let parsed = asked
        .split_once("..")
        .and_then(|(first, end)| Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?));
    parsed.unwrap_or_else(|| panic!("{variable}={asked} is not a range such as 0..300"))
}

/// Numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub(crate) struct Seeded(pub SplitMix64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }
}

/// Asserts that nothing runs and that everything in memory can be released.
pub(crate) fn assert_all_free(manager: &BufferManager) {
    let report = manager.report();
    assert_eq!((report.scans, report.chunks_in_use), (0, 0), "{report:?}");
    assert_eq!(report.operator_bytes, 0, "{report:?}");
    manager.evict_unneeded();
    assert_eq!(manager.report().decoded_bytes, 0, "{:?}", manager.report());
}

/// Does the same as [`assert_all_free`] once running loads and tasks have ended.
pub(crate) async fn assert_all_frees(manager: &BufferManager) {
    for _ in 0..500 {
        let report = manager.report();
        let decoded_bytes = report.decoded_bytes - report.decoded_idle_bytes;
        let held_bytes = decoded_bytes + report.operator_bytes;
        if report.loads_in_flight + report.scans + report.chunks_in_use == 0 && held_bytes == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_all_free(manager);
    assert_eq!(manager.report().loads_in_flight, 0);
    assert_eq!(manager.report().pool_held_bytes, 0, "{:?}", manager.report());
}

/// The largest stored size of a chunk with all its columns, over all shared tables of the default schema.
pub(crate) async fn chunk_bytes_max(context: &SessionContext) -> u64 {
    let catalog = context.catalog("datafusion").unwrap();
    let schema = catalog.schema("public").unwrap();
    let mut bytes_max = 0;
    for name in schema.table_names() {
        let provider = schema.table(&name).await.unwrap().unwrap();
        let Some(shared) = provider.downcast_ref::<SharedTableProvider>() else { continue };
        let shared = shared.table().await.unwrap();
        let layout = shared.table().layout();
        for chunk in layout.chunks() {
            let groups = (0..layout.group_count() as u32).map(coscan_runtime::core::GroupIndex);
            let pages = groups.flat_map(|group| layout.slice(chunk, group).to_vec());
            bytes_max = bytes_max.max(pages.map(|page| layout.bytes_of(page)).sum());
        }
    }
    bytes_max
}
