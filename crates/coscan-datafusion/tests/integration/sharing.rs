//! Sessions, tables, patterns, and the snapshots of a growing table share the files that they have in common.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, SharedScanExec, SharedTableProvider};
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::{StoreMetrics, Stores};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::StreamExt;
use object_store::local::LocalFileSystem;
use tempfile::TempDir;

use crate::support::{
    counted, create, create_ordered, leaf, manager, plain, plan, run, share_no_results,
};

const ROWS: i64 = 4_000;

/// Files in a directory, a manager for their readers, and the metrics of reads from them.
struct Files {
    directory: TempDir,
    manager: BufferManager,
    stores: Stores,
    metrics: Arc<StoreMetrics>,
}

impl Files {
    /// Writes the files with these numbers.
    fn new(numbers: Range<i64>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (stores, metrics) = counted(LocalFileSystem::new());
        let files = Self { directory, manager: manager(PolicyKind::Relevance), stores, metrics };
        numbers.for_each(|number| files.add(number));
        files
    }

    fn add(&self, number: i64) {
        let path = self.path().join(format!("{number}.parquet"));
        crate::support::write_numbers(&path, number * ROWS..(number + 1) * ROWS);
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn session(&self) -> SessionContext {
        let context = plain();
        let coscan = CoscanOptions::new(&self.manager)
            .with_stores(self.stores.clone())
            .with_table_options(crate::support::TABLE_OPTIONS)
            .with_direct_bytes_max(0);
        coscan.install(&context).unwrap();
        context
    }

    /// A session in which the files are table `t`.
    async fn table(&self) -> SessionContext {
        let context = self.session();
        create(&context, "t", self.path()).await;
        context
    }

    /// The bytes read so far.
    fn bytes(&self) -> u64 {
        self.metrics.snapshot().bytes
    }
}

async fn provider(context: &SessionContext, name: &str) -> SharedTableProvider {
    let provider = context.table_provider(name).await.unwrap();
    provider.downcast_ref::<SharedTableProvider>().unwrap().clone()
}

const SUM: &str = "SELECT count(*), sum(id), sum(value) FROM t";

#[tokio::test]
async fn a_second_session_opens_and_reads_nothing_again() {
    let files = Files::new(0..3);
    let first = files.table().await;
    let answer = run(&first, SUM).await;
    let before = files.bytes();
    let second = files.table().await;
    let third = files.session();
    create(&third, "t", &files.path().join("*.parquet")).await;
    assert_eq!(run(&second, SUM).await, answer);
    assert_eq!(run(&third, SUM).await, answer);
    assert_eq!(files.bytes(), before, "neither footers nor pages are read again");
    let (a, b) = (provider(&first, "t").await, provider(&second, "t").await);
    assert_eq!(
        a.table().await.unwrap().id(),
        b.table().await.unwrap().id(),
        "both are scheduled as one table"
    );
}

#[tokio::test]
async fn a_directory_and_a_file_in_it_share_the_file() {
    let files = Files::new(0..3);
    let context = files.table().await;
    create(&context, "part", &files.path().join("1.parquet")).await;
    run(&context, SUM).await;
    let before = files.bytes();
    let sum: i64 = (ROWS..2 * ROWS).sum();
    assert_eq!(run(&context, "SELECT sum(id) FROM part").await, [sum.to_string()]);
    assert_eq!(files.bytes(), before);
    // The file stays as long as a table lists it.
    run(&context, "DROP TABLE t").await;
    assert_eq!(run(&context, "SELECT sum(id) FROM part").await, [sum.to_string()]);
    assert_eq!(files.bytes(), before);
    run(&context, "DROP TABLE part").await;
    crate::support::assert_all_frees(&files.manager).await;
    assert_eq!(files.manager.report().pool_held_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_at_the_same_time_decode_as_much_as_one() {
    let files = Files::new(0..4);
    let context = files.table().await;
    run(&context, SUM).await;
    let (decoded, bytes) = (files.manager.report().slices_decoded, files.bytes());

    let together = Files::new(0..4);
    let (a, b) = (together.table().await, together.table().await);
    share_no_results(&a).await;
    share_no_results(&b).await;
    let (a, b) = tokio::join!(run(&a, SUM), run(&b, SUM));
    assert_eq!(a, b);
    assert_eq!(together.bytes(), bytes, "each page is read once");
    let report = together.manager.report();
    assert_eq!(report.slices_decoded + report.slices_reused, 2 * decoded);
}

/// Three sessions with the same files as `t`: a shared table, a table that the engine made, and a name of the
/// directory.
async fn three_ways(files: &Files) -> [(SessionContext, String); 3] {
    let created = files.table().await;
    let registered = files.session();
    let path = files.path().display().to_string();
    registered.register_parquet("t", &path, ParquetReadOptions::default()).await.unwrap();
    let named = files.session().enable_url_table();
    let by_url = SUM.replace("FROM t", &format!("FROM '{path}/'"));
    [(created, SUM.to_owned()), (registered, SUM.to_owned()), (named, by_url)]
}

#[tokio::test]
async fn tables_of_the_engine_share_with_shared_tables() {
    let files = Files::new(0..3);
    let sessions = three_ways(&files).await;
    let mut tables = Vec::new();
    let mut answers = Vec::new();
    let mut bytes = Vec::new();
    for (context, sql) in &sessions {
        let scan = leaf(&plan(context, &sql.replace("sum(id)", "sum(id + 1)")).await);
        tables.push(scan.downcast_ref::<SharedScanExec>().unwrap().table().id());
        answers.push(run(context, sql).await);
        bytes.push(files.bytes());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(bytes, [bytes[0]; 3], "neither footers nor pages are read again");
    assert_eq!(tables, [tables[0]; 3], "they are scheduled as one table");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_made_in_three_ways_decode_as_much_as_one() {
    let files = Files::new(0..4);
    let [(context, sql), ..] = three_ways(&files).await;
    run(&context, &sql).await;
    let (decoded, bytes) = (files.manager.report().slices_decoded, files.bytes());

    let together = Files::new(0..4);
    let sessions = three_ways(&together).await;
    for (context, _) in &sessions {
        share_no_results(context).await;
    }
    let [a, b, c] = sessions.each_ref().map(|(context, sql)| run(context, sql));
    let (a, b, c) = tokio::join!(a, b, c);
    assert!(a == b && b == c, "{a:?} {b:?} {c:?}");
    assert_eq!(together.bytes(), bytes, "each page is read once");
    let report = together.manager.report();
    assert_eq!(report.slices_decoded + report.slices_reused, 3 * decoded);
}

#[tokio::test]
async fn a_table_that_grows_and_shrinks_is_listed_again_and_reads_what_is_new() {
    let files = Files::new(1..4);
    let context = files.table().await;
    let count = "SELECT count(*), min(id), max(id) FROM t WHERE value >= 0";
    assert_eq!(run(&context, count).await, ["12000 4000 15999"]);

    // One file is added before the others and one after them, and one is removed.
    files.add(0);
    files.add(4);
    std::fs::remove_file(files.path().join("2.parquet")).unwrap();
    let running = context.sql("SELECT id, value FROM t").await.unwrap();
    let mut running = running.execute_stream().await.unwrap();
    let before = files.bytes();
    provider(&context, "t").await.refresh().await.unwrap();
    assert_eq!(run(&context, count).await, ["16000 0 19999"]);
    let new_bytes = files.bytes() - before;
    let added = [0, 4].map(|number| files.path().join(format!("{number}.parquet")));
    let file_bytes: u64 = added.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(new_bytes <= file_bytes + 2 * 64 * 1024, "{new_bytes} of {file_bytes} bytes are new");
    // A query that was planned before has the rows of its snapshot, some of which are in the pool
    // only.
    let mut rows = 0;
    while let Some(batch) = running.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert_eq!(rows, 12_000);
    let in_order = run(&context, "SELECT id FROM t ORDER BY id LIMIT 3").await;
    assert_eq!(in_order, ["0", "1", "2"]);
}

#[tokio::test]
async fn a_setting_limits_the_age_of_a_list() {
    let files = Files::new(0..1);
    let context = files.table().await;
    files.add(1);
    let count = "SELECT count(*) FROM t";
    assert_eq!(run(&context, count).await, [ROWS.to_string()]);
    run(&context, "SET coscan.refresh_interval = '3600s'").await;
    assert_eq!(run(&context, count).await, [ROWS.to_string()], "that is not so long ago");
    run(&context, "SET coscan.refresh_interval = '0s'").await;
    assert_eq!(run(&context, count).await, [(2 * ROWS).to_string()]);
}

#[tokio::test]
async fn declared_orders_hold_when_new_files_sort_before_the_old() {
    let files = Files::new(1..3);
    let context = files.session();
    create_ordered(&context, "t", "id", files.path()).await;
    files.add(0);
    provider(&context, "t").await.refresh().await.unwrap();
    let rows = run(&context, "SELECT id FROM t ORDER BY id").await;
    assert_eq!(rows, (0..3 * ROWS).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_leaves_the_table_as_it_was() {
    let files = Files::new(0..1);
    let context = files.table().await;
    std::fs::write(files.path().join("1.parquet"), b"no Parquet at all").unwrap();
    let error = provider(&context, "t").await.refresh().await.unwrap_err();
    assert!(error.to_string().contains("1.parquet"), "{error}");
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [ROWS.to_string()]);
    run(&context, "SET coscan.refresh_interval = '0s'").await;
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [ROWS.to_string()]);
}

#[tokio::test]
async fn footers_count_as_memory_as_long_as_their_file_is_open() {
    let files = Files::new(0..3);
    let context = files.table().await;
    let held = files.manager.report().metadata_bytes;
    assert!(held > 3 * 1000, "{held}");
    create(&context, "u", files.path()).await;
    let of_both = files.manager.report().metadata_bytes;
    assert!(of_both < held + held / 100, "they are there once: {held} bytes, then {of_both}");
}
