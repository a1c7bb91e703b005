//! Bloom filters rule out row groups, as in plain DataFusion, and never a row that passes the filter.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::{DirectFileStore, StoreMetrics};
use coscan_testing::write_parquet;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use parquet::file::properties::WriterProperties;

use crate::support::{TABLE_OPTIONS, counted, create, leaf, manager, plain, plan, run, shared};

const ROWS: i64 = 4000;

/// Rows in an order in which every row group has small and large values.
fn shuffled() -> Vec<i64> {
    (0..ROWS).map(|row| row * 1567 % ROWS * 2).collect()
}

fn write(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_bloom_filter_enabled(true)
        .build();
    write_parquet(path, batch, properties);
}

/// Even numbers as values of many types.
fn columns() -> RecordBatch {
    let ids = shuffled();
    let texts: Vec<_> = ids.iter().map(|id| format!("text {id}")).collect();
    let bytes = BinaryArray::from_iter_values(texts.iter().map(String::as_bytes));
    let decimals = |precision| -> ArrayRef {
        let values = Decimal128Array::from_iter_values(ids.iter().map(|&id| i128::from(id)));
        Arc::new(values.with_precision_and_scale(precision, 2).unwrap())
    };
    let nullable = ids.iter().map(|&id| (id % 3 != 0).then_some(id));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int64", Arc::new(Int64Array::from(ids.clone()))),
        ("int32", Arc::new(ids.iter().map(|&id| Some(id as i32)).collect::<Int32Array>())),
        ("int16", Arc::new(ids.iter().map(|&id| Some(id as i16)).collect::<Int16Array>())),
        ("uint64", Arc::new(ids.iter().map(|&id| Some(id as u64)).collect::<UInt64Array>())),
        ("float", Arc::new(ids.iter().map(|&id| Some(id as f64)).collect::<Float64Array>())),
        ("nullable", Arc::new(nullable.collect::<Int64Array>())),
        ("decimal9", decimals(9)),
        ("decimal18", decimals(18)),
        ("decimal30", decimals(30)),
        ("text", Arc::new(StringArray::from_iter_values(&texts))),
        ("bytes", Arc::new(bytes)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The `chunks` field of a scan in EXPLAIN.
async fn chunks(context: &SessionContext, sql: &str) -> String {
    let scan = leaf(&plan(context, sql).await);
    let text = displayable(scan.as_ref()).one_line().to_string();
    text.split(", ").find(|part| part.starts_with("chunks=")).unwrap().trim().to_owned()
}

async fn set(context: &SessionContext, on: bool) {
    let sql = format!("SET datafusion.execution.parquet.bloom_filter_on_read = {on}");
    run(context, &sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_found_whatever_the_type() {
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("t.parquet"), &columns());
    let manager = manager(PolicyKind::Relevance);
    let unpruned = plain();
    run(&unpruned, "SET datafusion.execution.parquet.pruning = false").await;
    let direct = plain();
    CoscanOptions::new(&manager).install(&direct).unwrap();
    let sessions = [shared(&manager), direct, plain()];
    for context in sessions.iter().chain([&unpruned]) {
        create(context, "t", data.path()).await;
    }
    for filter in [
        "int64 = 4242",
        "int64 = 4243",
        "int64 IN (2, 4, 4243)",
        "int64 IN (1, 3, 5)",
        "int64 NOT IN (2, 4)",
        "int64 <> 4242",
        "int32 = 10",
        "int16 = 10",
        "uint64 = 77",
        "uint64 = 78",
        "float = 512",
        "float = 0",
        "float = -0.0",
        "nullable = 3",
        "nullable = 4",
        "nullable IS NULL",
        "decimal9 = 12.34",
        "decimal18 = 12.34",
        "decimal30 = 12.34",
        "decimal30 = 12.35",
        "text = 'text 100'",
        "text = 'text 101'",
        "text = 'text 100' AND int64 = 102",
        "text = 'text 100' OR int64 = 102",
        "bytes = 'text 100'::bytea",
        "int64 = 4242 OR float > 7990",
    ] {
        let sql = format!("SELECT int64, text FROM t WHERE {filter} ORDER BY int64");
        let expected = run(&unpruned, &sql).await;
        for (session, context) in sessions.iter().enumerate() {
            assert_eq!(run(context, &sql).await, expected, "{filter}, session {session}");
        }
    }
}

/// A session with a table of forty chunks, and the metrics of reads from it.
async fn metered(
    data: &Path,
    options: Options,
) -> (SessionContext, BufferManager, Arc<StoreMetrics>) {
    let (stores, metrics) = counted(DirectFileStore::new());
    let manager = BufferManager::new(options).unwrap();
    let context = plain();
    let coscan = CoscanOptions::new(&manager).with_stores(stores).with_table_options(TABLE_OPTIONS);
    coscan.with_direct_bytes_max(0).install(&context).unwrap();
    create(&context, "t", data).await;
    metrics.reset();
    (context, manager, metrics)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_are_read_when_they_may_help_and_are_remembered() {
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("t.parquet"), &columns());
    let options = Options::with_pool_bytes(64 << 20, 256 << 20);
    let (context, manager, metrics) = metered(data.path(), options).await;
    let requests = || metrics.snapshot().requests;
    for sql in [
        "SELECT * FROM t WHERE int64 > 4242",
        "SELECT * FROM t WHERE int64 <> 4242",
        "SELECT * FROM t",
    ] {
        assert_eq!(chunks(&context, sql).await, "chunks=40 of 40 (0 pruned)", "{sql}");
    }
    // The footer is held with the statistics that planning has computed from it.
    let footer_bytes = manager.report().metadata_bytes;
    let sql = "SELECT * FROM t WHERE int64 = 4242";
    set(&context, false).await;
    assert_eq!(chunks(&context, sql).await, "chunks=40 of 40 (0 pruned)");
    assert_eq!(requests(), 0, "nothing that could help was to be read");
    assert_eq!(manager.report().metadata_bytes, footer_bytes);
    set(&context, true).await;
    let pruned = chunks(&context, sql).await;
    let left: usize = pruned["chunks=".len()..].split(' ').next().unwrap().parse().unwrap();
    assert!((1..8).contains(&left), "{pruned}");
    assert_eq!(requests(), 40, "a filter a row group");
    assert!(manager.report().metadata_bytes > footer_bytes, "they are counted");
    assert_eq!(chunks(&context, sql).await, pruned);
    let both = "SELECT * FROM t WHERE int64 = 4242 AND int32 = 4242";
    assert!(!chunks(&context, both).await.starts_with("chunks=40"));
    assert_eq!(requests(), 80, "those of `int64` are remembered");
    assert_eq!(run(&context, sql).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_take_no_more_memory_than_there_is() {
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("t.parquet"), &columns());
    let options = Options::with_memory_bytes(1 << 20);
    let (context, manager, _) = metered(data.path(), options).await;
    let footer_bytes = manager.report().metadata_bytes;
    for column in ["int64", "int32", "uint64", "nullable", "float"] {
        let sql = format!("SELECT int64 FROM t WHERE {column} = 4242");
        assert_eq!(run(&context, &sql).await.len(), usize::from(column != "nullable"), "{column}");
        let held = manager.report().metadata_bytes - footer_bytes;
        assert!(held <= (1 << 20) / 8, "{column}: {held}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_of_columns_of_another_type_are_not_used() {
    let data = tempfile::tempdir().unwrap();
    let batch = columns();
    let as_type = |data_type: &DataType| -> RecordBatch {
        let id = cast(batch.column_by_name("int64").unwrap(), data_type).unwrap();
        assert_eq!(id.len(), ROWS as usize);
        RecordBatch::try_from_iter([("id", id)]).unwrap()
    };
    write(&data.path().join("a.parquet"), &as_type(&DataType::Int32));
    write(&data.path().join("b.parquet"), &as_type(&DataType::Int64));
    let context = shared(&manager(PolicyKind::Relevance));
    let location = data.path().display();
    let sql =
        format!("CREATE EXTERNAL TABLE t (id BIGINT) STORED AS PARQUET LOCATION '{location}'");
    run(&context, &sql).await;
    assert_eq!(run(&context, "SELECT id FROM t WHERE id = 4242").await, ["4242", "4242"]);
}
