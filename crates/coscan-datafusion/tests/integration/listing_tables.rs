//! The engine's own tables of Parquet files share scans in a session with coscan.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_datafusion::{CoscanOptions, SharedScanExec};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{MeteredStore, StoreMetrics, Stores};
use coscan_storage::table::FileOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::ListingOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{ParquetReadOptions, SessionContext, col};
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::support::{explain, leaf, manager, plan, run, shared};

const SUM: &str = "SELECT count(*), sum(id), sum(value) FROM t";

/// Three files of 400 rows each, in a directory.
fn three_files() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let path = data.path().join(format!("{number}.parquet"));
        crate::support::write_numbers(&path, number * 400..(number + 1) * 400);
    }
    data
}

async fn register(context: &SessionContext, name: &str, location: &Path) {
    let location = location.display().to_string();
    context.register_parquet(name, &location, ParquetReadOptions::default()).await.unwrap();
}

fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    if plan.children().is_empty() {
        return vec![plan.name().to_owned()];
    }
    plan.children().into_iter().flat_map(scans).collect()
}

async fn scans_of(context: &SessionContext, sql: &str) -> Vec<String> {
    scans(&plan(context, sql).await)
}

#[tokio::test]
async fn tables_made_in_any_way_share_scans() {
    let data = three_files();
    let context = shared(&manager(PolicyKind::Relevance)).enable_url_table();
    let location = format!("{}/", data.path().display());
    register(&context, "t", data.path()).await;
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
    context.register_listing_table("listed", &location, options, None, None).await.unwrap();
    let file = format!("{location}1.parquet");
    for (from, rows) in [
        ("t", 1200),
        ("listed", 1200),
        (format!("'{location}'").as_str(), 1200),
        (format!("'{file}'").as_str(), 400),
    ] {
        let sql = format!("SELECT count(*) FROM {from} WHERE value >= 0");
        assert_eq!(run(&context, &sql).await, [rows.to_string()], "{sql}");
        assert_eq!(scans_of(&context, &sql).await, ["SharedScanExec"], "{sql}");
        let shown = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(shown.contains("SharedScanExec: table="), "{shown}");
        assert!(!shown.contains("DataSourceExec"), "{shown}");
    }
    let frame = context.read_parquet(location, ParquetReadOptions::default()).await.unwrap();
    let read = frame.clone().select(vec![col("id")]).unwrap();
    assert_eq!(scans(&read.create_physical_plan().await.unwrap()), ["SharedScanExec"]);
    assert_eq!(frame.count().await.unwrap(), 1200);
}

#[tokio::test]
async fn statements_of_all_kinds_give_what_the_engine_gives() {
    let data = three_files();
    let plain = crate::support::plain();
    let context = shared(&manager(PolicyKind::Relevance));
    for context in [&plain, &context] {
        register(context, "t", data.path()).await;
        run(context, "CREATE VIEW v AS SELECT id, key FROM t WHERE id % 3 = 0").await;
    }
    for (sql, scans) in [
        ("SELECT id, text FROM t WHERE key = 3 ORDER BY id DESC LIMIT 7", 1),
        ("SELECT a.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.key = 2 ORDER BY 1", 2),
        ("SELECT a.id FROM t a JOIN t b ON a.id < b.id AND b.id < 9 ORDER BY a.id, b.id", 2),
        ("SELECT key, count(*) FROM v GROUP BY key ORDER BY key", 1),
        ("SELECT id FROM t WHERE value > (SELECT avg(value) FROM t) ORDER BY id", 2),
        ("SELECT id FROM t WHERE id IN (SELECT id * 7 FROM v) ORDER BY id", 2),
        ("SELECT id FROM t o WHERE EXISTS (SELECT 1 FROM t WHERE id = o.id + 1199)", 2),
        ("SELECT id FROM t UNION ALL SELECT key FROM v ORDER BY 1", 2),
    ] {
        assert_eq!(run(&context, sql).await, run(&plain, sql).await, "{sql}");
        assert_eq!(scans_of(&context, sql).await, vec!["SharedScanExec"; scans], "{sql}");
    }
    for sql in [
        "DESCRIBE t",
        "SHOW COLUMNS FROM t",
        "SELECT count(*), min(id), max(text) FROM t",
        "SELECT sum(id) FROM t WHERE id > 2000",
        "SELECT count(*) FROM (SELECT id FROM t LIMIT 450)",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT t.id + 5 FROM t JOIN n ON t.id = n.i \
         WHERE i < 30) SELECT i FROM n ORDER BY i",
    ] {
        run(&context, "SET datafusion.catalog.information_schema = true").await;
        run(&plain, "SET datafusion.catalog.information_schema = true").await;
        assert_eq!(run(&context, sql).await, run(&plain, sql).await, "{sql}");
    }
    run(&context, "PREPARE p(BIGINT) AS SELECT sum(id) FROM t WHERE key = $1").await;
    let expected: i64 = (0..1200).filter(|id| id % 10 == 4).sum();
    assert_eq!(run(&context, "EXECUTE p(4)").await, [expected.to_string()]);
    let analyzed = explain(&context, &format!("EXPLAIN ANALYZE {SUM} WHERE id >= 0")).await;
    assert!(analyzed.contains("SharedScanExec: table=t"), "{analyzed}");
}

#[tokio::test]
async fn streams_and_writes_read_shared_scans_and_write_the_engines_tables() {
    let data = three_files();
    let context = shared(&manager(PolicyKind::Relevance));
    register(&context, "t", data.path()).await;
    let stream = context.sql("SELECT id FROM t").await.unwrap().execute_stream().await.unwrap();
    let batches: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1200);

    let written = tempfile::tempdir().unwrap();
    let location = format!("{}/", written.path().display());
    let frame = context.table("t").await.unwrap();
    frame.write_parquet(&location, DataFrameWriteOptions::new(), None).await.unwrap();
    register(&context, "copy", written.path()).await;
    let count = "SELECT count(*), sum(id) FROM copy WHERE id >= 0";
    assert_eq!(run(&context, count).await, ["1200 719400"]);
    assert_eq!(scans_of(&context, count).await, ["SharedScanExec"]);
    // The next query sees the inserted rows, since it lists the files again.
    run(&context, "INSERT INTO copy SELECT id + 1200, key, value, text FROM t").await;
    assert_eq!(run(&context, count).await, ["2400 2878800"]);
    run(&context, &format!("COPY (SELECT id FROM t) TO '{location}ids.csv'")).await;
    let lines = std::fs::read_to_string(written.path().join("ids.csv")).unwrap();
    assert_eq!(lines.lines().count(), 1201);
}

#[tokio::test]
async fn directories_are_columns_and_prune_files() {
    let data = tempfile::tempdir().unwrap();
    for year in 2020..2024_i64 {
        let directory = data.path().join(format!("year={year}"));
        std::fs::create_dir(&directory).unwrap();
        let ids = (year - 2020) * 300..(year - 2019) * 300;
        crate::support::write_numbers(&directory.join("part.parquet"), ids);
    }
    let plain = crate::support::plain();
    let manager = manager(PolicyKind::Relevance);
    let context = shared(&manager);
    for context in [&plain, &context] {
        for (name, data_type) in [
            ("t", DataType::Int32),
            ("u", DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8))),
        ] {
            let options = ParquetReadOptions::default()
                .table_partition_cols(vec![("year".to_owned(), data_type)]);
            let location = data.path().display().to_string();
            context.register_parquet(name, &location, options).await.unwrap();
        }
    }
    for sql in [
        "SELECT year, count(*), sum(id) FROM t GROUP BY year ORDER BY year",
        "SELECT sum(id) FROM t WHERE year = 2021",
        "SELECT sum(id) FROM t WHERE year > 2021 AND id < 1000",
        "SELECT id, year FROM t WHERE year = 2022 ORDER BY id LIMIT 3",
        "SELECT year, min(id) FROM u WHERE year <> '2020' GROUP BY year ORDER BY year",
        "SELECT count(*) FROM t WHERE year = 1999",
        "SELECT DISTINCT year FROM u ORDER BY year",
    ] {
        assert_eq!(run(&context, sql).await, run(&plain, sql).await, "{sql}");
    }
    assert_eq!(
        scans_of(&context, "SELECT sum(value) FROM t WHERE year = 2021").await,
        ["SharedScanExec"]
    );
    let shown = explain(&context, "EXPLAIN SELECT sum(value) FROM t WHERE year = 2021").await;
    assert!(shown.contains("chunks=3 of 3"), "{shown}");
}

/// A session that counts reads of local files, including those of the engine's own scans.
fn counted(manager: &BufferManager) -> (SessionContext, Arc<StoreMetrics>) {
    let metrics = StoreMetrics::new();
    let store = MeteredStore::new(Arc::new(LocalFileSystem::new()), Arc::clone(&metrics));
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    let context = crate::support::plain();
    context.register_object_store(&"file:///".parse().unwrap(), store);
    let options = FileOptions { chunk_rows: 100, ..FileOptions::default() };
    let coscan = CoscanOptions::new(manager).with_stores(Stores::new()).with_table_options(options);
    coscan.install(&context).unwrap();
    (context, metrics)
}

#[tokio::test]
async fn a_known_list_is_not_opened_again() {
    let data = three_files();
    let manager = manager(PolicyKind::Relevance);
    let (context, metrics) = counted(&manager);
    register(&context, "t", data.path()).await;
    let registered = metrics.snapshot();
    let sql = "SELECT sum(value) FROM t WHERE id >= 0";
    plan(&context, sql).await;
    assert_eq!(metrics.snapshot().bytes, registered.bytes, "the session has read the footers");
    run(&context, sql).await;
    let read = metrics.snapshot();
    assert!(read.bytes > registered.bytes);
    run(&context, sql).await;
    assert_eq!(metrics.snapshot().bytes, read.bytes, "footers and pages are there");
    assert_eq!(plan(&context, "SELECT id FROM t").await.name(), "SharedScanExec");
    // Only an additional file is opened.
    crate::support::write_numbers(&data.path().join("3.parquet"), 1200..1600);
    context.runtime_env().cache_manager.get_list_files_cache().unwrap().clear();
    let file_bytes = data.path().join("3.parquet").metadata().unwrap().len();
    assert_eq!(run(&context, "SELECT count(id + 0) FROM t WHERE id >= 0").await, ["1600"]);
    let new_bytes = metrics.snapshot().bytes - read.bytes;
    assert!(new_bytes <= 3 * file_bytes, "{new_bytes} of a file of {file_bytes} bytes");
}

#[tokio::test]
async fn a_table_of_the_engine_is_refreshed() {
    let data = three_files();
    let context = shared(&manager(PolicyKind::Relevance)).enable_url_table();
    register(&context, "t", data.path()).await;
    let count = "SELECT count(*) FROM t WHERE id >= 0";
    assert_eq!(run(&context, count).await, ["1200"]);
    crate::support::write_numbers(&data.path().join("3.parquet"), 1200..1600);
    assert_eq!(run(&context, count).await, ["1200"], "the session has the list in its cache");
    coscan_datafusion::refresh(&context, "t").await.unwrap();
    assert_eq!(run(&context, count).await, ["1600"]);
    run(&context, "CREATE VIEW v AS SELECT id FROM t").await;
    let error = coscan_datafusion::refresh(&context, "v").await.unwrap_err().to_string();
    assert!(error.contains("v has no list of files"), "{error}");
}

/// The memory of footers once `is_enough` holds for it, or after some seconds.
async fn footer_bytes(manager: &BufferManager, is_enough: impl Fn(u64) -> bool) -> u64 {
    for _ in 0..1000 {
        if is_enough(manager.report().metadata_bytes) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    manager.report().metadata_bytes
}

#[tokio::test]
async fn unused_lists_are_dropped() {
    let data = three_files();
    for (idle_timeout, keeps) in [(Duration::from_millis(1), false), (Duration::MAX, true)] {
        let options = Options { idle_timeout, ..Options::with_pool_bytes(64 << 20, 256 << 20) };
        let manager = BufferManager::new(options).unwrap();
        let context = shared(&manager);
        register(&context, "t", data.path()).await;
        let in_use = plan(&context, "SELECT id FROM t").await;
        assert_eq!(leaf(&in_use).name(), "SharedScanExec");
        assert!(manager.report().metadata_bytes > 0, "a plan holds its files");
        drop(in_use);
        let left = footer_bytes(&manager, |bytes| keeps || bytes == 0).await;
        assert_eq!(left > 0, keeps);
        assert_eq!(run(&context, "SELECT count(*) FROM t WHERE id >= 0").await, ["1200"]);
    }
}

#[tokio::test]
async fn used_lists_stay_while_others_are_dropped() {
    let data = three_files();
    // This is long enough for three queries on a busy machine.
    let idle_timeout = Duration::from_secs(2);
    let options = Options { idle_timeout, ..Options::with_pool_bytes(64 << 20, 256 << 20) };
    let manager = BufferManager::new(options).unwrap();
    let context = shared(&manager);
    crate::support::share_no_results(&context).await;
    let query = async |number: i32| {
        run(&context, &format!("SELECT sum(value) FROM t{number} WHERE id >= 0")).await;
        manager.report().metadata_bytes
    };
    for number in 0..3 {
        let file = data.path().join(format!("{number}.parquet"));
        register(&context, &format!("t{number}"), &file).await;
    }
    let one = query(0).await;
    let all = query(1).await.max(query(2).await);
    assert!(all > 2 * one, "{all} of {one} each");
    // While it is queried continuously, it is never idle.
    let started = Instant::now();
    while query(0).await != one && started.elapsed() < 30 * idle_timeout {}
    assert_eq!(query(0).await, one);
}

#[tokio::test]
async fn a_scan_that_needs_few_of_many_files_opens_no_more_than_the_engine() {
    let data = tempfile::tempdir().unwrap();
    for number in 0..30 {
        let path = data.path().join(format!("{number:02}.parquet"));
        crate::support::write_numbers(&path, number * 100..(number + 1) * 100);
    }
    let schema = crate::support::numbers(0..1).schema();
    for (sql, collects, keeps, scan) in [
        ("SELECT id, text FROM t LIMIT 5", false, false, "DataSourceExec"),
        ("SELECT id, text FROM t LIMIT 5", true, false, "DataSourceExec"),
        ("SELECT id FROM t WHERE id = 1234", true, false, "DataSourceExec"),
        // Without statistics the engine also opens all files.
        ("SELECT id FROM t WHERE id = 1234", false, false, "SharedScanExec"),
        ("SELECT id FROM t WHERE id >= 0", true, false, "SharedScanExec"),
        // Footers whose statistics were used cost nothing.
        ("SELECT id FROM t WHERE id = 1234", true, true, "SharedScanExec"),
    ] {
        let manager = manager(PolicyKind::Relevance);
        let context = shared(&manager);
        let kept = if keeps { "50M" } else { "0K" };
        run(&context, &format!("SET datafusion.runtime.metadata_cache_limit = '{kept}'")).await;
        run(&context, &format!("SET datafusion.execution.collect_statistics = {collects}")).await;
        let options = ParquetReadOptions::default().schema(&schema);
        let location = data.path().display().to_string();
        context.register_parquet("t", &location, options).await.unwrap();
        assert_eq!(scans_of(&context, sql).await, [scan], "{sql}, {collects}, {keeps}");
        assert_eq!(manager.report().metadata_bytes > 0, scan == "SharedScanExec", "{sql}");
    }
}

#[tokio::test]
async fn small_scans_are_left_to_the_engine() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("t.parquet");
    crate::support::write(&path, &crate::support::numbers(0..100_000), 10_000);
    let context = crate::support::plain();
    CoscanOptions::new(&manager(PolicyKind::Relevance)).install(&context).unwrap();
    register(&context, "t", &path).await;
    let sql = "SELECT id, text FROM t WHERE id BETWEEN 20100 AND 20103";
    assert_eq!(scans_of(&context, sql).await, ["DataSourceExec"]);
    assert_eq!(run(&context, sql).await.len(), 4);
    assert_eq!(scans_of(&context, "SELECT sum(id + 1) FROM t").await, ["SharedScanExec"]);
}

#[tokio::test]
async fn declared_orders_are_kept_or_left_to_the_engine() {
    let data = three_files();
    let context = shared(&manager(PolicyKind::Relevance));
    let order = vec![vec![col("id").sort(true, false)]];
    let options = ParquetReadOptions::default().file_sort_order(order.clone());
    let location = data.path().display().to_string();
    context.register_parquet("t", &location, options.clone()).await.unwrap();
    let sql = "SELECT id FROM t ORDER BY id";
    let planned = plan(&context, sql).await;
    assert_eq!(leaf(&planned).name(), "SharedScanExec");
    let expected: Vec<_> = (0..1200).map(|id| id.to_string()).collect();
    assert_eq!(run(&context, sql).await, expected);
    assert!(!explain(&context, &format!("EXPLAIN {sql}")).await.contains("SortExec"));
    // The engine merges overlapping files that each keep the order.
    crate::support::write_numbers(&data.path().join("9.parquet"), 0..1);
    context.deregister_table("t").unwrap();
    context.register_parquet("t", &location, options).await.unwrap();
    assert_eq!(leaf(&plan(&context, sql).await).name(), "DataSourceExec");
    assert_eq!(run(&context, sql).await.len(), 1201);
}

#[tokio::test]
async fn undeclared_orders_of_files_save_as_many_sorts_as_without_coscan() {
    let data = tempfile::tempdir().unwrap();
    let plain = crate::support::plain();
    let context = shared(&manager(PolicyKind::Relevance));
    let location = data.path().display();
    for number in 0..2 {
        let copy = format!(
            "COPY (SELECT value AS id, value % 7 AS key FROM generate_series({}, {}) ORDER BY id) \
             TO '{location}/{number}.parquet'",
            number * 500,
            number * 500 + 499
        );
        run(&plain, &copy).await;
    }
    for context in [&plain, &context] {
        register(context, "t", data.path()).await;
    }
    for (sql, scan) in [
        ("SELECT id FROM t ORDER BY id", "DataSourceExec"),
        (
            "SELECT id + 1 FROM (SELECT id FROM t WHERE key < 3) ORDER BY id LIMIT 700",
            "DataSourceExec",
        ),
        ("SELECT id, row_number() OVER (ORDER BY id) FROM t ORDER BY id", "DataSourceExec"),
        ("SELECT key, sum(id) FROM t GROUP BY key ORDER BY key", "SharedScanExec"),
        ("SELECT id FROM t WHERE id % 9 = 0", "SharedScanExec"),
    ] {
        let sorts = async |context| {
            let plan = explain(context, &format!("EXPLAIN {sql}")).await;
            plan.matches("SortExec").count()
        };
        assert_eq!(sorts(&context).await, sorts(&plain).await, "{sql}");
        assert_eq!(scans_of(&context, sql).await, [scan], "{sql}");
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        let is_engines = text.contains("not_shared=only its files declare an order");
        assert_eq!(is_engines, scan == "DataSourceExec", "{text}");
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        assert_eq!(sorted(run(&context, sql).await), sorted(run(&plain, sql).await), "{sql}");
    }
}

#[tokio::test]
async fn what_coscan_cannot_read_is_left_to_the_engine() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("t.parquet");
    crate::support::write_numbers(&path, 0..100);
    let context = shared(&manager(PolicyKind::Relevance));
    // Coscan does not cast the file's type to this type.
    let schema = Schema::new(vec![Field::new("id", DataType::Utf8, true)]);
    let options = ParquetReadOptions::default().schema(&schema);
    context.register_parquet("t", path.to_str().unwrap(), options).await.unwrap();
    let sql = "SELECT id FROM t WHERE id = '42'";
    for _ in 0..2 {
        assert_eq!(run(&context, sql).await, ["42"]);
        assert_eq!(scans_of(&context, sql).await, ["DataSourceExec"]);
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(
            text.contains("not_shared=coscan cannot read these files as the engine does"),
            "{text}"
        );
    }
    // Texts are read as the declared type, which is not a view.
    let schema = crate::support::numbers(0..1).schema();
    let options = ParquetReadOptions::default().schema(&schema);
    context.register_parquet("texts", path.to_str().unwrap(), options).await.unwrap();
    let planned = plan(&context, "SELECT text FROM texts").await;
    assert_eq!(planned.schema().field(0).data_type(), &DataType::Utf8);
    assert_eq!(leaf(&planned).name(), "SharedScanExec");
    assert_eq!(run(&context, "SELECT max(text) FROM texts WHERE id < 3").await, ["text 2"]);
}

#[tokio::test]
async fn errors_are_those_of_the_engine() {
    let data = three_files();
    std::fs::write(data.path().join("torn.parquet"), "PAR1 and no more").unwrap();
    let plain = crate::support::plain().enable_url_table();
    let context = shared(&manager(PolicyKind::Relevance)).enable_url_table();
    let schema = crate::support::numbers(0..1).schema();
    for context in [&plain, &context] {
        let options = ParquetReadOptions::default().schema(&schema);
        let location = data.path().display().to_string();
        context.register_parquet("t", &location, options).await.unwrap();
    }
    for sql in
        [SUM.to_owned(), format!("SELECT * FROM '{}/nowhere.parquet'", data.path().display())]
    {
        let error =
            async |context| crate::support::slt::run(context, &sql).await.unwrap_err().to_string();
        assert_eq!(error(&context).await, error(&plain).await);
    }
    // A file that fails does not affect tables without it.
    register(&context, "part", &data.path().join("1.parquet")).await;
    assert_eq!(run(&context, "SELECT count(*) FROM part WHERE id > 0").await, ["400"]);
}

#[tokio::test]
async fn the_store_of_the_session_is_read() {
    let manager = manager(PolicyKind::Relevance);
    let data = three_files();
    let bytes = std::fs::read(data.path().join("2.parquet")).unwrap();
    // Two sessions have different files at one address.
    let mut contexts = Vec::new();
    for name in ["1", "2"] {
        let store = Arc::new(InMemory::new());
        let bytes = match name {
            "1" => std::fs::read(data.path().join("1.parquet")).unwrap(),
            _ => bytes.clone(),
        };
        store.put(&"x/t.parquet".into(), PutPayload::from(bytes)).await.unwrap();
        let context = shared(&manager);
        context.register_object_store(&"mem://bucket".parse().unwrap(), store);
        let options = ParquetReadOptions::default();
        context.register_parquet("t", "mem://bucket/x/", options).await.unwrap();
        contexts.push(context);
    }
    let sum = "SELECT min(id), max(id) FROM t WHERE value >= 0";
    assert_eq!(run(&contexts[0], sum).await, ["400 799"]);
    assert_eq!(run(&contexts[1], sum).await, ["800 1199"]);
    assert_eq!(scans_of(&contexts[1], sum).await, ["SharedScanExec"]);
}

#[tokio::test]
async fn coscan_installed_twice_wraps_the_planner_once() {
    let data = three_files();
    let context = shared(&manager(PolicyKind::Relevance));
    let other = manager(PolicyKind::Relevance);
    coscan_datafusion::install(&context, &other).unwrap();
    register(&context, "t", data.path()).await;
    run(&context, "SELECT sum(id) FROM t WHERE id >= 0").await;
    assert!(other.report().pool_held_bytes > 0, "the one installed last reads");
    let planner = format!("{:?}", context.state().query_planner());
    assert_eq!(planner.matches("SharingPlanner").count(), 1, "{planner}");
    let plan = plan(&context, "SELECT id FROM t").await;
    assert!(plan.downcast_ref::<SharedScanExec>().is_some());
}
