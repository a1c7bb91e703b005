//! Stores of sessions, names of files in queries, and what is kept between queries, under hostile conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use coscan_datafusion::{CoscanOptions, SharedTableProvider, enable_url_table, refresh};
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::stores::Stores;
use coscan_storage::table::ParquetTable;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use url::Url;

use crate::support::{TABLE_OPTIONS, explain, manager, plain, run, shared};

/// A Parquet file of a column `n`.
fn file(rows: std::ops::Range<i64>) -> Vec<u8> {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("f.parquet");
    let column: ArrayRef = Arc::new(rows.collect::<Int64Array>());
    crate::support::write(&path, &RecordBatch::try_from_iter([("n", column)]).unwrap(), 100);
    std::fs::read(path).unwrap()
}

async fn put(store: &InMemory, path: &str, rows: std::ops::Range<i64>) {
    store.put(&Path::from(path), file(rows).into()).await.unwrap();
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn session_of(manager: &BufferManager, stores: &Stores) -> SessionContext {
    let context = enable_url_table(plain());
    let coscan =
        CoscanOptions::new(manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
    coscan.with_stores(stores.clone()).install(&context).unwrap();
    context
}

#[tokio::test]
async fn the_store_of_the_longest_prefix_wins_in_create_external_table() {
    let (root, fast) = (InMemory::new(), InMemory::new());
    put(&root, "fast/t.parquet", 0..10).await;
    put(&fast, "fast/t.parquet", 100..110).await;
    let stores = Stores::new();
    stores.register(&url("mem://b/"), Arc::new(root));
    stores.register(&url("mem://b/fast/"), Arc::new(fast));
    let manager = manager(PolicyKind::Relevance);
    let context = session_of(&manager, &stores);
    run(&context, "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mem://b/fast/t.parquet'")
        .await;
    assert_eq!(run(&context, "SELECT min(n) FROM t").await, ["100"]);
}

#[tokio::test]
async fn directories_of_one_name_in_two_stores_are_two() {
    let (a, b) = (InMemory::new(), InMemory::new());
    put(&a, "t/1.parquet", 0..10).await;
    put(&b, "t/1.parquet", 100..110).await;
    put(&b, "t/2.parquet", 110..120).await;
    let stores = Stores::new();
    stores.register(&url("s3://a/"), Arc::new(a));
    stores.register(&url("s3://b/"), Arc::new(b));
    let manager = manager(PolicyKind::Relevance);
    let context = session_of(&manager, &stores);
    assert_eq!(run(&context, "SELECT sum(n + 0) FROM 's3://a/t/'").await, ["45"]);
    assert_eq!(run(&context, "SELECT sum(n + 0) FROM 's3://b/t/'").await, ["2190"]);
    assert_eq!(run(&context, "SELECT sum(n + 0) FROM 's3://a/t/'").await, ["45"]);
}

#[tokio::test]
async fn a_store_that_takes_the_place_of_another_in_memory_has_its_own_pages() {
    let options = Options { idle_timeout: Duration::MAX, ..Options::with_memory_bytes(4 << 20) };
    let manager = BufferManager::new(options).unwrap();
    let context = shared(&manager);
    let store = Arc::new(InMemory::new());
    put(&store, "t.parquet", 0..1000).await;
    let before = Arc::as_ptr(&store).addr();
    context.register_object_store(&url("mem://b/"), store);
    let options = ParquetReadOptions::default;
    context.register_parquet("t", "mem://b/t.parquet", options()).await.unwrap();
    assert_eq!(run(&context, "SELECT sum(n + 0) FROM t").await, ["499500"]);
    assert!(manager.report().pool_held_bytes > 0);
    let with_footers = manager.report().metadata_bytes;
    crate::support::drop_unused(&manager);
    assert!(manager.report().metadata_bytes < with_footers / 2, "the footers are gone");
    // Another store replaces it.
    context.runtime_env().object_store_registry.deregister_store(&url("mem://b/")).unwrap();
    let mut others: Vec<Arc<InMemory>> = Vec::new();
    for _ in 0..100_000 {
        let other = Arc::new(InMemory::new());
        let is_there = Arc::as_ptr(&other).addr() == before;
        others.push(other);
        if is_there {
            break;
        }
    }
    let other = others.pop().unwrap();
    eprintln!("same address: {}", Arc::as_ptr(&other).addr() == before);
    put(&other, "t.parquet", 1000..2000).await;
    context.register_object_store(&url("mem://b/"), other);
    assert_eq!(run(&context, "SELECT sum(n + 0) FROM t").await, ["1499500"]);
}

#[tokio::test]
async fn a_manager_goes_with_its_sessions() {
    let data = tempfile::tempdir().unwrap();
    crate::support::write_numbers(&data.path().join("a.parquet"), 0..1000);
    let location = data.path().display().to_string();
    let held = {
        let manager = manager(PolicyKind::Relevance);
        struct Held;
        let held = Arc::downgrade(&manager.extension(|| Held));
        let context = session_of(&manager, &Stores::new());
        context.register_parquet("t", &location, ParquetReadOptions::default()).await.unwrap();
        run(&context, "SELECT sum(id + 0) FROM t").await;
        run(&context, &format!("SELECT sum(id + 0) FROM '{location}/'")).await;
        crate::support::create(&context, "u", data.path()).await;
        run(&context, "SELECT sum(id + 0) FROM u").await;
        let paths = [format!("{location}/a.parquet")];
        let table = ParquetTable::open_locations(manager.stores(), &paths, TABLE_OPTIONS).await;
        let table = manager.register(Arc::new(table.unwrap()));
        let provider = SharedTableProvider::new(&manager, &table).unwrap();
        context.register_table("p", Arc::new(provider)).unwrap();
        run(&context, "SELECT sum(id + 0) FROM p").await;
        CoscanOptions::new(&manager).install(&context).unwrap();
        run(&context, "SELECT sum(id + 0) FROM t").await;
        held
    };
    for _ in 0..200 {
        if held.upgrade().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the manager is still there");
}

#[tokio::test]
async fn what_is_refreshed_is_found_by_any_name() {
    let data = tempfile::tempdir().unwrap();
    crate::support::write_numbers(&data.path().join("a.parquet"), 0..10);
    let location = format!("{}/", data.path().display());
    let manager = manager(PolicyKind::Relevance);
    let context = session_of(&manager, &Stores::new());
    let options = ParquetReadOptions::default;
    context.register_parquet("\"A.b \"\"c\"", &location, options()).await.unwrap();
    let queries = [
        "SELECT count(*) FROM \"A.b \"\"c\"".to_owned(),
        format!("SELECT count(*) FROM '{location}'"),
    ];
    for sql in &queries {
        assert_eq!(run(&context, sql).await, ["10"]);
    }
    crate::support::write_numbers(&data.path().join("b.parquet"), 10..30);
    for table in ["\"A.b \"\"c\"".to_owned(), format!("\"{location}\"")] {
        refresh(&context, table.as_str()).await.unwrap_or_else(|error| panic!("{table}: {error}"));
    }
    for sql in &queries {
        assert_eq!(run(&context, sql).await, ["30"], "{sql}");
    }
    run(&context, "CREATE VIEW v AS SELECT 1").await;
    run(&context, "CREATE TABLE m AS SELECT 1").await;
    for table in ["v", "m", "missing", "no.such.table", "a.b.c.d", ""] {
        let error = refresh(&context, table).await.unwrap_err();
        eprintln!("{table:?}: {error}");
    }
}

#[tokio::test]
async fn hostile_names_are_errors() {
    let manager = manager(PolicyKind::Relevance);
    let context = session_of(&manager, &Stores::new());
    let long = format!("http://127.0.0.1:1/{}", "x".repeat(100_000));
    for name in [
        "s3://",
        "s3:///",
        "http://",
        "http:///x",
        "http://127.0.0.1:1/%FF.parquet",
        "file:///etc/passwd",
        "file:///etc/%2e%2e/%FF",
        "file://host/x.parquet",
        "http://user:HUNTER2@127.0.0.1:1/x.parquet",
        "s3://KEY:HUNTER2@bucket/x.parquet",
        "http://127.0.0.1:1/*.parquet",
        "file:///nowhere/[a-",
        "://",
        "a://",
        "://x",
        "az://container/x",
        "az://:HUNTER2@container/x",
        "abfs://u:HUNTER2@host/x",
        "mailto:x://y",
        "data:,://",
        "file:///",
        "file:///nowhere/../x#y",
        "http://127.0.0.1:1/x?sig=HUNTER2",
        "http://[::1",
        "x://y",
        &long,
    ] {
        let sql = format!("SELECT * FROM '{name}'");
        let result =
            tokio::time::timeout(Duration::from_secs(60), crate::support::slt::run(&context, &sql))
                .await;
        let shown: String = name.chars().take(60).collect();
        let text = match result.unwrap_or_else(|_| panic!("{shown} takes too long")) {
            Ok(rows) => format!("{} rows", rows.len()),
            Err(error) => error.to_string(),
        };
        if !name.contains("?sig") {
            assert!(!text.contains("HUNTER2"), "{text}");
        }
    }
}

#[tokio::test]
async fn patterns_in_urls_lead_to_files_or_are_told_why_not() {
    let store = InMemory::new();
    put(&store, "t/1.parquet", 0..10).await;
    let stores = Stores::new();
    stores.register(&url("s3://a/"), Arc::new(store));
    let manager = manager(PolicyKind::Relevance);
    let context = session_of(&manager, &stores);
    let result =
        crate::support::slt::run(&context, "SELECT count(*) FROM 's3://a/t/*.parquet'").await;
    let text = result.unwrap_err().to_string();
    assert!(text.contains("CREATE EXTERNAL TABLE"), "{text}");
    let result =
        crate::support::slt::run(&context, "SELECT count(*) FROM 's3://a/t/none*.parquet'").await;
    let text = result.unwrap_err().to_string();
    assert!(text.contains("none*.parquet"), "{text}");
}

#[tokio::test]
async fn sessions_of_one_runtime_have_stores_of_their_own() {
    let (a, b) = (InMemory::new(), InMemory::new());
    put(&a, "t.parquet", 0..10).await;
    put(&b, "t.parquet", 100..110).await;
    let (stores_a, stores_b) = (Stores::new(), Stores::new());
    stores_a.register(&url("s3://x/"), Arc::new(a));
    stores_b.register(&url("s3://x/"), Arc::new(b));
    let manager = manager(PolicyKind::Relevance);
    let first = session_of(&manager, &stores_a);
    let config = datafusion::prelude::SessionConfig::new().with_target_partitions(4);
    let second = enable_url_table(SessionContext::new_with_config_rt(config, first.runtime_env()));
    let coscan =
        CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
    coscan.with_stores(stores_b).install(&second).unwrap();
    assert_eq!(run(&first, "SELECT sum(n + 0) FROM 's3://x/t.parquet'").await, ["45"]);
    assert_eq!(run(&second, "SELECT sum(n + 0) FROM 's3://x/t.parquet'").await, ["1045"]);
    assert!(
        explain(&second, "EXPLAIN SELECT sum(n + 0) FROM 's3://x/t.parquet'")
            .await
            .contains("SharedScanExec")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_exact_while_footers_and_lists_come_and_go() {
    let data = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for table in 0..6_i64 {
        let directory = data.path().join(format!("d{table}"));
        std::fs::create_dir(&directory).unwrap();
        for part in 0..3 {
            let start = table * 10_000 + part * 1000;
            crate::support::write_numbers(
                &directory.join(format!("{part}.parquet")),
                start..start + 1000,
            );
        }
        let ids = table * 10_000..table * 10_000 + 3000;
        expected.push(format!("3000 {}", ids.sum::<i64>()));
    }
    let options =
        Options { idle_timeout: Duration::from_millis(2), ..Options::with_memory_bytes(1 << 20) };
    let manager = BufferManager::new(options).unwrap();
    let contexts = [session_of(&manager, &Stores::new()), session_of(&manager, &Stores::new())];
    for context in &contexts {
        for table in 0..6 {
            let location = data.path().join(format!("d{table}")).display().to_string();
            context
                .register_parquet(format!("t{table}"), &location, ParquetReadOptions::default())
                .await
                .unwrap();
        }
    }
    // The task ends by a flag instead of an abort, so that it returns its memory.
    let ended = Arc::new(AtomicBool::new(false));
    let pressure = {
        let (memory, ended) = (manager.operator_memory(), ended.clone());
        tokio::spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                for bytes in [700 << 10, 500 << 10, 300 << 10] {
                    if memory.try_take(bytes) {
                        tokio::task::yield_now().await;
                        memory.give(bytes);
                    }
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    let mut tasks = Vec::new();
    for worker in 0..6_usize {
        let (context, expected, data) =
            (contexts[worker % 2].clone(), expected.clone(), data.path().to_owned());
        tasks.push(tokio::spawn(async move {
            let mut failures = Vec::new();
            for round in 0..60_usize {
                let table = (worker * 7 + round) % 6;
                let from = match round % 2 {
                    0 => format!("t{table}"),
                    _ => format!("'{}/d{table}/'", data.display()),
                };
                let sql = format!("SELECT count(*), sum(id) FROM {from} WHERE id + 0 >= 0");
                match crate::support::slt::run(&context, &sql).await {
                    Ok(rows) => assert_eq!(rows, [expected[table].clone()], "{sql}"),
                    Err(error) => failures.push(error.to_string()),
                }
            }
            failures
        }));
    }
    let mut failures = Vec::new();
    for task in tasks {
        let result =
            tokio::time::timeout(Duration::from_secs(120), task).await.expect("a deadlock");
        failures.extend(result.unwrap());
    }
    ended.store(true, Ordering::Relaxed);
    pressure.await.unwrap();
    // A query may be refused memory under such pressure, but must not fail otherwise.
    assert!(failures.iter().all(|text: &String| text.contains("memory")), "{failures:?}");
    drop(contexts);
    for _ in 0..300 {
        crate::support::drop_unused(&manager); // Published results.
        if manager.report().metadata_bytes == 0 && manager.report().pool_held_bytes == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let report = manager.report();
    assert_eq!(
        (report.metadata_bytes, report.pool_held_bytes, report.operator_bytes),
        (0, 0, 0),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_second_copy_of_a_footer_is_counted_as_long_as_it_is_held() {
    let data = tempfile::tempdir().unwrap();
    crate::support::write_numbers(&data.path().join("a.parquet"), 0..1000);
    let manager = manager(PolicyKind::Relevance);
    let context = session_of(&manager, &Stores::new());
    crate::support::create(&context, "t", &data.path().join("a.parquet")).await;
    let one = manager.report().metadata_bytes;
    let paths = [data.path().join("a.parquet").display().to_string()];
    let table = ParquetTable::open_locations(manager.stores(), &paths, TABLE_OPTIONS).await;
    let table = manager.register(Arc::new(table.unwrap()));
    let provider = SharedTableProvider::new(&manager, &table).unwrap();
    context.register_table("p", Arc::new(provider)).unwrap();
    run(&context, "DROP TABLE t").await;
    // Opening files also looks for files that were closed.
    manager
        .open_files(Vec::<coscan_storage::table::TableFile>::new(), TABLE_OPTIONS)
        .await
        .unwrap();
    assert!(manager.report().metadata_bytes >= one, "{:?}", manager.report());
}
