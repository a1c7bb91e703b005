//! The parts of a session that installing coscan changes and keeps, and the statements that create shared tables.

use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, SharedTableProvider};
use coscan_runtime::core::PolicyKind;
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutPayload, path::Path};
use url::Url;

use crate::support::{create, leaf, manager, numbers_table, plan, run, shared};

async fn refusal(context: &SessionContext, sql: &str) -> String {
    crate::support::slt::run(context, sql).await.unwrap_err().to_string()
}

#[tokio::test]
async fn installing_keeps_tables_settings_and_the_session() {
    let context = crate::support::plain();
    run(&context, "SET datafusion.execution.batch_size = 123").await;
    run(&context, "CREATE TABLE kept AS VALUES (1), (2)").await;
    let session_id = context.session_id();
    coscan_datafusion::install(&context, &manager(PolicyKind::Relevance)).unwrap();
    assert_eq!(run(&context, "SELECT count(*) FROM kept").await, ["2"]);
    assert_eq!(context.copied_config().batch_size(), 123);
    assert_eq!(context.state().session_id(), session_id);
    assert!(CoscanOptions::of(&context.copied_config()).is_some());
    assert!(context.runtime_env().memory_pool.to_string().contains("coscan"));
    let rules = |context: &SessionContext| context.state().physical_optimizers().len();
    let installed = rules(&context);
    assert!(installed > rules(&crate::support::plain()));
    coscan_datafusion::install(&context, &manager(PolicyKind::Relevance)).unwrap();
    assert_eq!(rules(&context), installed, "what was installed is replaced");
    let options = context.copied_config();
    assert!(options.options().catalog.create_default_catalog_and_schema);
}

#[tokio::test]
async fn a_session_may_keep_its_memory_pool() {
    let context = crate::support::plain();
    let coscan = CoscanOptions::new(&manager(PolicyKind::Relevance)).with_session_memory_pool();
    coscan.install(&context).unwrap();
    assert!(!context.runtime_env().memory_pool.to_string().contains("coscan"));
}

#[tokio::test]
async fn a_dropped_table_frees_its_pages() {
    let (_data, manager, context) = numbers_table(1000).await;
    run(&context, "SELECT sum(value) FROM numbers").await;
    assert!(manager.report().pool_held_bytes > 0);
    run(&context, "DROP TABLE numbers").await;
    assert_eq!(manager.report().pool_held_bytes, 0);
}

#[tokio::test]
async fn unsupported_statements_are_refused_with_the_reason() {
    let data = crate::support::numbers_directory(10);
    std::fs::create_dir(data.path().join("key=1")).unwrap();
    crate::support::write_numbers(&data.path().join("key=1/part.parquet"), 0..10);
    std::fs::create_dir(data.path().join("nothing")).unwrap();
    std::fs::write(data.path().join("torn.parquet"), "PAR1").unwrap();
    let context = shared(&manager(PolicyKind::Relevance));
    let at = data.path().display();
    let file = format!("'{at}/numbers.parquet'");
    for (middle, location, wanted) in [
        ("PARTITIONED BY (key)", file.clone(), "no file is in directories named key="),
        ("OPTIONS ('coerce_int96' 'days')", file.clone(), "must be ns, us, ms or s"),
        ("OPTIONS ('binary_as_string' 'maybe')", file.clone(), "maybe"),
        ("", format!("'{at}/'"), "name different columns (key and none)"),
        ("", format!("'{at}/nowhere.parquet'"), "does not exist"),
        ("", format!("'{at}/nothing/'"), "without Parquet files"),
        ("", format!("'{at}/*.csv'"), "no file matches"),
        ("", format!("'{at}/torn.parquet'"), "torn.parquet"),
        ("", "'nosuch://host/x'".to_owned(), "no store is known"),
    ] {
        let sql = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET {middle} LOCATION {location}");
        let error = refusal(&context, &sql).await;
        assert!(error.contains(wanted), "{sql}: {error}");
    }
}

#[tokio::test]
async fn a_location_is_a_file_a_directory_or_a_pattern() {
    let data = tempfile::tempdir().unwrap();
    for (name, ids) in [("a1.parquet", 0..150), ("a2.parquet", 150..320), ("b.parquet", 320..400)] {
        crate::support::write_numbers(&data.path().join(name), ids);
    }
    let context = shared(&manager(PolicyKind::Relevance));
    for (location, rows) in [("a1.parquet", "150"), ("", "400"), ("a*.parquet", "320")] {
        run(&context, "DROP TABLE IF EXISTS t").await;
        create(&context, "t", &data.path().join(location)).await;
        assert_eq!(run(&context, "SELECT count(id) FROM t WHERE value >= 0").await, [rows]);
    }
    assert_eq!(leaf(&plan(&context, "SELECT id FROM t").await).name(), "SharedScanExec");
}

#[tokio::test]
async fn a_store_of_the_session_is_used() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("numbers.parquet");
    crate::support::write_numbers(&path, 0..1000);
    let store = Arc::new(InMemory::new());
    let bytes = PutPayload::from(std::fs::read(&path).unwrap());
    store.put(&Path::from("in/memory/numbers.parquet"), bytes).await.unwrap();
    let context = shared(&manager(PolicyKind::Relevance));
    context.register_object_store(&Url::parse("mem://bucket").unwrap(), store);
    let create = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mem://bucket/in/memory/'";
    run(&context, create).await;
    assert_eq!(run(&context, "SELECT sum(id) FROM t").await, ["499500"]);
}

#[tokio::test]
async fn a_provider_is_registered_by_hand() {
    let data = crate::support::numbers_directory(1000);
    let manager = manager(PolicyKind::Elevator);
    let coscan = CoscanOptions::new(&manager).with_table_options(crate::support::TABLE_OPTIONS);
    let location = data.path().display().to_string();
    let opened = SharedTableProvider::open(&coscan, &[location]).await.unwrap();
    let same = SharedTableProvider::new(&manager, &opened.table().await.unwrap()).unwrap();
    let context = crate::support::plain();
    context.register_table("opened", Arc::new(opened)).unwrap();
    context.register_table("same", Arc::new(same)).unwrap();
    let sql = "SELECT count(*), sum(a.id) FROM opened a JOIN same b ON a.id = b.id";
    assert_eq!(run(&context, sql).await, ["1000 499500"]);
    let memory = MemTable::try_new(Arc::new(arrow::datatypes::Schema::empty()), vec![vec![]]);
    context.register_table("other", Arc::new(memory.unwrap())).unwrap();
}
