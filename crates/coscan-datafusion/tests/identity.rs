//! Whoever lists a file shares it: sessions, tables, patterns, and snapshots of a table that grows.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::Arc;

use coscan_datafusion::{Coscan, SharedScanExec, SharedTableProvider};
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::{MeteredStore, StoreMetrics, Stores};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::StreamExt;
use object_store::local::LocalFileSystem;

use support::{create, leaf, manager, plain, plan, run};

const ROWS: i64 = 4_000;

/// Stores that count what is read of local files.
fn counted() -> (Stores, Arc<StoreMetrics>) {
    let metrics = StoreMetrics::new();
    let store = MeteredStore::new(Arc::new(LocalFileSystem::new()), Arc::clone(&metrics));
    let stores = Stores::new();
    stores.register(&"file:///".parse().unwrap(), Arc::new(store));
    (stores, metrics)
}

fn session(manager: &BufferManager, stores: &Stores) -> SessionContext {
    let context = plain();
    let coscan = Coscan::new(manager)
        .with_stores(stores.clone())
        .with_table_options(support::TABLE_OPTIONS)
        .with_direct_bytes_max(0);
    coscan.install(&context).unwrap();
    context
}

async fn provider(context: &SessionContext, name: &str) -> SharedTableProvider {
    let provider = context.table_provider(name).await.unwrap();
    provider.downcast_ref::<SharedTableProvider>().unwrap().clone()
}

fn add_file(directory: &Path, number: i64) {
    let path = directory.join(format!("{number}.parquet"));
    support::write_numbers(&path, number * ROWS..(number + 1) * ROWS);
}

const SUM: &str = "SELECT count(*), sum(id), sum(value) FROM t";

#[tokio::test]
async fn a_table_of_another_session_is_opened_and_read_for_nothing() {
    let data = tempfile::tempdir().unwrap();
    (0..3).for_each(|number| add_file(data.path(), number));
    let manager = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let first = session(&manager, &stores);
    create(&first, "t", data.path()).await;
    let answer = run(&first, SUM).await;
    let before = metrics.snapshot();
    let second = session(&manager, &stores);
    create(&second, "t", data.path()).await;
    let third = session(&manager, &stores);
    create(&third, "t", &data.path().join("*.parquet")).await;
    assert_eq!(run(&second, SUM).await, answer);
    assert_eq!(run(&third, SUM).await, answer);
    assert_eq!(metrics.snapshot().bytes, before.bytes, "neither footers nor pages are read again");
    let (a, b) = (provider(&first, "t").await, provider(&second, "t").await);
    assert_eq!(
        a.table().await.unwrap().id(),
        b.table().await.unwrap().id(),
        "both are scheduled as one table"
    );
}

#[tokio::test]
async fn a_directory_and_a_file_in_it_share_the_file() {
    let data = tempfile::tempdir().unwrap();
    (0..3).for_each(|number| add_file(data.path(), number));
    let manager = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let context = session(&manager, &stores);
    create(&context, "t", data.path()).await;
    create(&context, "part", &data.path().join("1.parquet")).await;
    run(&context, SUM).await;
    let before = metrics.snapshot();
    let sum: i64 = (ROWS..2 * ROWS).sum();
    assert_eq!(run(&context, "SELECT sum(id) FROM part").await, [sum.to_string()]);
    assert_eq!(metrics.snapshot().bytes, before.bytes);
    // The file stays for the one as long as anybody lists it.
    run(&context, "DROP TABLE t").await;
    assert_eq!(run(&context, "SELECT sum(id) FROM part").await, [sum.to_string()]);
    assert_eq!(metrics.snapshot().bytes, before.bytes);
    run(&context, "DROP TABLE part").await;
    support::assert_all_frees(&manager).await;
    assert_eq!(manager.report().pool_held_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_at_a_time_decode_what_one_does() {
    let data = tempfile::tempdir().unwrap();
    (0..4).for_each(|number| add_file(data.path(), number));
    let alone = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let context = session(&alone, &stores);
    create(&context, "t", data.path()).await;
    run(&context, SUM).await;
    let (decoded, bytes) = (alone.report().slices_decoded, metrics.snapshot().bytes);

    let together = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let sessions = [session(&together, &stores), session(&together, &stores)];
    for context in &sessions {
        create(context, "t", data.path()).await;
    }
    let [a, b] = &sessions;
    let (a, b) = tokio::join!(run(a, SUM), run(b, SUM));
    assert_eq!(a, b);
    assert_eq!(metrics.snapshot().bytes, bytes, "each page is read once");
    let report = together.report();
    assert_eq!(report.slices_decoded + report.slices_reused, 2 * decoded);
}

/// Three sessions with the same files as `t`: a shared table, one that the engine made, and a name of the directory.
async fn three_ways(
    manager: &BufferManager,
    stores: &Stores,
    location: &Path,
) -> [(SessionContext, String); 3] {
    let created = session(manager, stores);
    create(&created, "t", location).await;
    let registered = session(manager, stores);
    let path = location.display().to_string();
    registered.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
    let named = session(manager, stores).enable_url_table();
    let by_url = SUM.replace("FROM t", &format!("FROM '{path}/'"));
    [(created, SUM.to_owned()), (registered, SUM.to_owned()), (named, by_url)]
}

#[tokio::test]
async fn tables_of_the_engine_share_with_shared_tables() {
    let data = tempfile::tempdir().unwrap();
    (0..3).for_each(|number| add_file(data.path(), number));
    let manager = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let sessions = three_ways(&manager, &stores, data.path()).await;
    let mut tables = Vec::new();
    let mut answers = Vec::new();
    let mut bytes = Vec::new();
    for (context, sql) in &sessions {
        let scan = leaf(&plan(context, &sql.replace("sum(id)", "sum(id + 1)")).await);
        tables.push(scan.downcast_ref::<SharedScanExec>().unwrap().table().id());
        answers.push(run(context, sql).await);
        bytes.push(metrics.snapshot().bytes);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(bytes, [bytes[0]; 3], "neither footers nor pages are read again");
    assert_eq!(tables, [tables[0]; 3], "they are scheduled as one table");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_made_in_three_ways_decode_at_a_time_what_one_does() {
    let data = tempfile::tempdir().unwrap();
    (0..4).for_each(|number| add_file(data.path(), number));
    let alone = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let [(context, sql), ..] = three_ways(&alone, &stores, data.path()).await;
    run(&context, &sql).await;
    let (decoded, bytes) = (alone.report().slices_decoded, metrics.snapshot().bytes);

    let together = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let sessions = three_ways(&together, &stores, data.path()).await;
    let [a, b, c] = sessions.each_ref().map(|(context, sql)| run(context, sql));
    let (a, b, c) = tokio::join!(a, b, c);
    assert!(a == b && b == c, "{a:?} {b:?} {c:?}");
    assert_eq!(metrics.snapshot().bytes, bytes, "each page is read once");
    let report = together.report();
    assert_eq!(report.slices_decoded + report.slices_reused, 3 * decoded);
}

#[tokio::test]
async fn a_table_that_grows_and_shrinks_is_listed_again_and_reads_what_is_new() {
    let data = tempfile::tempdir().unwrap();
    (1..4).for_each(|number| add_file(data.path(), number));
    let manager = manager(PolicyKind::Relevance);
    let (stores, metrics) = counted();
    let context = session(&manager, &stores);
    create(&context, "t", data.path()).await;
    let count = "SELECT count(*), min(id), max(id) FROM t WHERE value >= 0";
    assert_eq!(run(&context, count).await, ["12000 4000 15999"]);

    // One before the others, one behind them; one goes.
    add_file(data.path(), 0);
    add_file(data.path(), 4);
    std::fs::remove_file(data.path().join("2.parquet")).unwrap();
    let running = context.sql("SELECT id, value FROM t").await.unwrap();
    let mut running = running.execute_stream().await.unwrap();
    let before = metrics.snapshot();
    provider(&context, "t").await.refresh().await.unwrap();
    assert_eq!(run(&context, count).await, ["16000 0 19999"]);
    let new_bytes = metrics.snapshot().bytes - before.bytes;
    let files = [0, 4].map(|number| data.path().join(format!("{number}.parquet")));
    let file_bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(new_bytes <= file_bytes + 2 * 64 * 1024, "{new_bytes} of {file_bytes} bytes are new");
    // What was planned before has the rows of its snapshot, some of which are in the pool only.
    let mut rows = 0;
    while let Some(batch) = running.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert_eq!(rows, 12_000);
    let in_order = run(&context, "SELECT id FROM t ORDER BY id LIMIT 3").await;
    assert_eq!(in_order, ["0", "1", "2"]);
}

#[tokio::test]
async fn a_session_says_how_old_a_list_may_be() {
    let data = tempfile::tempdir().unwrap();
    add_file(data.path(), 0);
    let manager = manager(PolicyKind::Relevance);
    let (stores, _) = counted();
    let context = session(&manager, &stores);
    create(&context, "t", data.path()).await;
    add_file(data.path(), 1);
    let count = "SELECT count(*) FROM t";
    assert_eq!(run(&context, count).await, [ROWS.to_string()]);
    run(&context, "SET coscan.refresh = 3600").await;
    assert_eq!(run(&context, count).await, [ROWS.to_string()], "that is not so long ago");
    run(&context, "SET coscan.refresh = 0").await;
    assert_eq!(run(&context, count).await, [(2 * ROWS).to_string()]);
}

#[tokio::test]
async fn declared_orders_hold_although_files_come_later_that_stand_before() {
    let data = tempfile::tempdir().unwrap();
    (1..3).for_each(|number| add_file(data.path(), number));
    let manager = manager(PolicyKind::Relevance);
    let (stores, _) = counted();
    let context = session(&manager, &stores);
    let location = data.path().display();
    run(
        &context,
        &format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{location}' WITH ORDER (id)"),
    )
    .await;
    add_file(data.path(), 0);
    provider(&context, "t").await.refresh().await.unwrap();
    let rows = run(&context, "SELECT id FROM t ORDER BY id").await;
    assert_eq!(rows, (0..3 * ROWS).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_leaves_the_table_as_it_was() {
    let data = tempfile::tempdir().unwrap();
    add_file(data.path(), 0);
    let manager = manager(PolicyKind::Relevance);
    let (stores, _) = counted();
    let context = session(&manager, &stores);
    create(&context, "t", data.path()).await;
    std::fs::write(data.path().join("1.parquet"), b"no Parquet at all").unwrap();
    let error = provider(&context, "t").await.refresh().await.unwrap_err();
    assert!(error.to_string().contains("1.parquet"), "{error}");
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [ROWS.to_string()]);
    run(&context, "SET coscan.refresh = 0").await;
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [ROWS.to_string()]);
}

#[tokio::test]
async fn footers_count_as_memory_as_long_as_their_file_is_open() {
    let data = tempfile::tempdir().unwrap();
    (0..3).for_each(|number| add_file(data.path(), number));
    let manager = manager(PolicyKind::Relevance);
    let (stores, _) = counted();
    let context = session(&manager, &stores);
    create(&context, "t", data.path()).await;
    let held = manager.report().footer_bytes;
    assert!(held > 3 * 1000, "{held}");
    create(&context, "u", data.path()).await;
    assert_eq!(manager.report().footer_bytes, held, "they are there once");
}
