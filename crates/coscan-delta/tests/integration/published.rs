//! Tables of a database, published as Delta tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coscan_datafusion::runtime::{BufferManager, Options};
use coscan_datafusion::{
    CoscanOptions, DatabaseOptions, ManagedDatabase, ManagedStatement, run_managed_statement,
};
use coscan_delta::DeltaPublisher;
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::DFParser;
use serde_json::{Value, json};

use super::rows;

/// What takes longer never happens.
const HANG: Duration = Duration::from_secs(120);

/// A database, a session that changes it, and one that reads what is published.
struct Published {
    directory: tempfile::TempDir,
    database: ManagedDatabase,
    writer: SessionContext,
    coscan: CoscanOptions,
}

impl Published {
    async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap()).await
    }

    async fn open(directory: tempfile::TempDir) -> Self {
        Self::open_with(directory, Duration::from_secs(3600)).await
    }

    async fn open_with(directory: tempfile::TempDir, retention: Duration) -> Self {
        let manager = BufferManager::new(Options::with_memory_bytes(256 << 20)).unwrap();
        let coscan = CoscanOptions::new(&manager);
        let publisher = Some(Arc::new(DeltaPublisher::default()) as _);
        let options = DatabaseOptions { publisher, retention, ..DatabaseOptions::default() };
        let database = ManagedDatabase::open_with(coscan.clone(), directory.path(), options);
        let database = database.await.unwrap();
        let writer = SessionContext::new();
        coscan.clone().install(&writer).unwrap();
        database.add_to(&writer).unwrap();
        Self { directory, database, writer, coscan }
    }

    /// Closes the database, and opens it again.
    async fn reopened(self) -> Self {
        let Self { directory, database, writer, coscan } = self;
        drop((database, writer, coscan));
        let manager = BufferManager::new(Options::with_memory_bytes(1 << 20)).unwrap();
        // Work in the background ends meanwhile.
        in_time(async || {
            ManagedDatabase::open(CoscanOptions::new(&manager), directory.path()).await.is_ok()
        })
        .await;
        Self::open(directory).await
    }

    async fn try_run(&self, sql: &str) -> Result<()> {
        let statement = DFParser::parse_sql(sql)?.pop_front().unwrap();
        match run_managed_statement(&self.writer, statement).await? {
            ManagedStatement::Executed(_) => {}
            ManagedStatement::Plan(plan) => {
                let plan = self.writer.state().create_physical_plan(&plan).await?;
                collect(plan, self.writer.task_ctx()).await?;
            }
        }
        Ok(())
    }

    async fn run(&self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    fn path(&self, table: &str) -> PathBuf {
        self.directory.path().join("delta").join(table)
    }

    /// The rows of the published table.
    async fn rows(&self, table: &str) -> Vec<String> {
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let context = SessionContext::new();
        coscan_datafusion::install(&context, &manager).unwrap();
        coscan_delta::install(&context).unwrap();
        let location = self.path(table).display().to_string();
        let create = format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'");
        context.sql(&create).await.unwrap().collect().await.unwrap();
        rows(&context, "SELECT * FROM t").await
    }

    /// The rows that the database has.
    async fn expected(&self, table: &str) -> Vec<String> {
        rows(&self.writer, &format!("SELECT * FROM {table}")).await
    }

    /// Writes a commit as another engine does, after the newest one.
    fn write_foreign(&self, table: &str, actions: &[Value]) -> u64 {
        let log = self.path(table).join("_delta_log");
        let version = commits(&log);
        let lines = actions.iter().map(|action| format!("{action}\n"));
        let path = log.join(format!("{version:020}.json"));
        std::fs::write(path, lines.collect::<String>()).unwrap();
        version
    }
}

/// Waits until something is so.
async fn in_time(is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, waiting).await.expect("it happens");
}

/// The number of commits in a log.
fn commits(log: &Path) -> u64 {
    let is_commit = |name: &Path| name.extension().is_some_and(|extension| extension == "json");
    let files = std::fs::read_dir(log).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| is_commit(file)).count() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn published_rows_are_those_of_the_last_checkpoint() {
    let test = Published::new().await;
    test.run(
        "CREATE TABLE t AS SELECT arrow_cast(value, 'Int32') AS id, CAST(value AS VARCHAR) AS name, \
         arrow_cast(DATE '2026-01-01', 'Timestamp(Microsecond, None)') AS at FROM range(100)",
    )
    .await;
    test.run("VACUUM FULL t").await;
    let first = test.expected("t").await;
    assert_eq!(test.rows("t").await, first);
    test.run("UPDATE t SET name = 'other' WHERE id < 10").await;
    test.run("DELETE FROM t WHERE id > 90").await;
    test.run("INSERT INTO t VALUES (1000, NULL, NULL)").await;
    assert_eq!(test.rows("t").await, first, "changes are not published before a checkpoint");
    test.run("VACUUM FULL t").await;
    let second = test.expected("t").await;
    assert_ne!(first, second);
    assert_eq!(test.rows("t").await, second);
    let versions = commits(&test.path("t").join("_delta_log"));
    test.run("VACUUM FULL").await;
    let test = test.reopened().await;
    test.run("VACUUM FULL").await;
    assert_eq!(commits(&test.path("t").join("_delta_log")), versions, "nothing was changed");
    assert_eq!(test.rows("t").await, second);
    test.run("TRUNCATE TABLE t").await;
    test.run("VACUUM FULL t").await;
    assert!(test.rows("t").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_become_files_at_once_are_published_without_a_checkpoint() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT value AS id FROM range(100000)").await;
    // The background publishes after the commit.
    let commit = test.path("t").join("_delta_log/00000000000000000000.json");
    in_time(async || commit.exists() && !test.rows("t").await.is_empty()).await;
    assert_eq!(test.rows("t").await.len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_created_anew_has_its_columns() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT 1 AS a").await;
    test.run("VACUUM FULL").await;
    test.run("CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, true AS c").await;
    test.run("VACUUM FULL").await;
    assert_eq!(test.rows("t").await, ["x true"]);
    test.run("DROP TABLE t").await;
    test.run("VACUUM FULL").await;
    assert!(!test.path("t").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_engine_may_rewrite_files_and_remove_old_ones() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT value AS id FROM range(10)").await;
    test.run("VACUUM FULL").await;
    let files: Vec<_> =
        std::fs::read_dir(test.path("t")).unwrap().map(|file| file.unwrap()).collect();
    let file = files.iter().find(|file| file.path().is_file()).unwrap();
    std::fs::copy(file.path(), test.path("t").join("compacted.parquet")).unwrap();
    let size = file.metadata().unwrap().len();
    test.write_foreign(
        "t",
        &[
            json!({ "remove": { "path": file.file_name().to_str(), "dataChange": false, "deletionTimestamp": 1 } }),
            json!({ "add": { "path": "compacted.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": false } }),
        ],
    );
    std::fs::remove_file(file.path()).unwrap();
    assert_eq!(test.rows("t").await.len(), 10);
    assert_eq!(test.expected("t").await.len(), 10, "the database has its file");
    test.run("INSERT INTO t VALUES (11)").await;
    test.run("VACUUM FULL t").await;
    assert_eq!(test.rows("t").await, test.expected("t").await);
    assert_eq!(test.rows("t").await.len(), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_another_engine_are_not_overwritten() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT 1 AS id").await;
    test.run("VACUUM FULL").await;
    let add = json!({ "add": { "path": "other.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": true } });
    let version = test.write_foreign("t", &[json!({ "commitInfo": {} }), add]);
    test.run("INSERT INTO t VALUES (2)").await;
    let error = test.try_run("VACUUM FULL t").await.unwrap_err().to_string();
    assert!(error.contains(&format!("in its version {version}")), "{error}");
    assert!(error.contains("other engines do not see the newest rows of table t"), "{error}");
    assert_eq!(test.expected("t").await, ["1", "2"]);
    assert_eq!(commits(&test.path("t").join("_delta_log")), version + 1);
    test.run("DROP TABLE t").await;
    test.run("VACUUM FULL").await;
    assert!(test.path("t").exists(), "what another engine wrote is not removed");
    test.run("CREATE TABLE t AS SELECT 3 AS id").await;
    std::fs::rename(test.path("t"), test.directory.path().join("elsewhere")).unwrap();
    test.run("VACUUM FULL").await;
    assert_eq!(test.rows("t").await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_from_a_backup_does_not_take_the_place_of_a_newer_one() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT 1 AS id").await;
    test.run("VACUUM FULL").await;
    let log = test.path("t").join("_delta_log");
    let newest = log.join(format!("{:020}.json", commits(&log) - 1));
    let content = std::fs::read_to_string(&newest).unwrap();
    let lines = content.lines().map(|line| {
        let mut action: Value = serde_json::from_str(line).unwrap();
        if let Some(transaction) = action.get_mut("txn") {
            transaction["version"] = json!(1_000_000);
        }
        format!("{action}\n")
    });
    std::fs::write(&newest, lines.collect::<String>()).unwrap();
    let test = test.reopened().await;
    test.run("INSERT INTO t VALUES (2)").await;
    let error = test.try_run("VACUUM FULL t").await.unwrap_err().to_string();
    assert!(error.contains("restored from a backup"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_delta_lake_does_not_have_keep_a_table_from_being_published() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT 1 AS a").await;
    test.run("VACUUM FULL t").await;
    assert!(test.path("t").exists());
    test.run("CREATE OR REPLACE TABLE t AS SELECT arrow_cast(1, 'UInt32') AS a").await;
    test.run("VACUUM FULL t").await;
    assert!(!test.path("t").exists(), "the rows of a table that is gone");
    assert_eq!(test.expected("t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_may_have_any_name() {
    let mut test = Published::new().await;
    for (name, directory) in [("a b", "a@20b"), ("é/..", "@C3@A9@2F@2E@2E")] {
        let quoted = format!("\"{name}\"");
        test.run(&format!("CREATE TABLE {quoted} AS SELECT 1 AS id")).await;
        test.run(&format!("VACUUM FULL {quoted}")).await;
        test = test.reopened().await;
        test.run(&format!("INSERT INTO {quoted} VALUES (2)")).await;
        test.run("VACUUM FULL").await;
        assert_eq!(test.rows(directory).await, ["1", "2"]);
        test.run(&format!("DROP TABLE {quoted}")).await;
        test.run("VACUUM FULL").await;
        assert!(!test.path(directory).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_too_long_are_not_published() {
    let test = Published::new().await;
    let (long, too_long) = ("y".repeat(245), "é".repeat(60));
    for name in [&long, &too_long] {
        test.run(&format!("CREATE TABLE \"{name}\" AS SELECT 1 AS id")).await;
        test.run("VACUUM FULL").await;
    }
    assert_eq!(test.rows(&long).await, ["1"]);
    for name in [&long, &too_long] {
        test.run(&format!("DROP TABLE \"{name}\"")).await;
        test.run("VACUUM FULL").await;
    }
    assert!(!test.path(&long).exists());
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_removed_behind_symbolic_links() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT value AS id FROM range(100000)").await;
    test.run("VACUUM FULL").await;
    std::os::unix::fs::symlink("../table-0", test.path("x")).unwrap();
    test.run("CREATE TABLE u AS SELECT 1 AS id").await;
    test.run("DROP TABLE u").await;
    test.run("VACUUM FULL").await;
    assert_eq!(std::fs::read_dir(test.directory.path().join("table-0")).unwrap().count(), 1);
    let delta = test.directory.path().join("delta");
    std::fs::rename(&delta, test.directory.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(".", &delta).unwrap();
    test.run("CREATE TABLE u AS SELECT 1 AS id").await;
    test.run("DROP TABLE u").await;
    test.run("VACUUM FULL").await;
    let test = test.reopened().await;
    assert_eq!(test.expected("t").await.len(), 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_others_have_removed_are_linked_again() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT 1 AS id").await;
    test.run("VACUUM FULL t").await;
    for file in std::fs::read_dir(test.path("t")).unwrap().map(|file| file.unwrap().path()) {
        if file.is_file() {
            std::fs::remove_file(file).unwrap();
        }
    }
    test.run("VACUUM FULL t").await;
    assert_eq!(test.rows("t").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_need_not_read_all_commits() {
    let test = Published::new().await;
    test.run("CREATE TABLE t AS SELECT 1 AS id").await;
    test.run("VACUUM FULL t").await;
    let log = test.path("t").join("_delta_log");
    while commits(&log) < 100 {
        test.write_foreign("t", &[json!({ "commitInfo": {} })]);
    }
    test.run("INSERT INTO t VALUES (2)").await;
    test.run("VACUUM FULL t").await;
    assert!(log.join("_last_checkpoint").exists());
    assert!(log.join("00000000000000000100.checkpoint.parquet").exists());
    std::fs::remove_file(log.join("00000000000000000003.json")).unwrap();
    assert_eq!(test.rows("t").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_go_with_the_files_of_the_database() {
    let (retention, directory) = (Duration::ZERO, tempfile::tempdir().unwrap());
    let test = Published::open_with(directory, retention).await;
    for id in 0..4 {
        let create = if id == 0 { "CREATE TABLE t AS" } else { "INSERT INTO t" };
        test.run(&format!("{create} SELECT {id} AS id")).await;
        test.run("UPDATE t SET id = id + 1").await;
        test.run("VACUUM FULL t").await;
    }
    let files = std::fs::read_dir(test.path("t")).unwrap().map(|file| file.unwrap().path());
    let links = files.filter(|file| file.extension().is_some_and(|kind| kind == "parquet"));
    // Those of the version before the last one were still kept when the last one was published.
    assert!((1..=2).contains(&links.count()));
    assert_eq!(test.rows("t").await, ["4"; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_go_although_the_table_is_not_published_again() {
    let test = Published::open_with(tempfile::tempdir().unwrap(), Duration::ZERO).await;
    test.run("CREATE TABLE t AS SELECT value AS id FROM range(10)").await;
    test.run("VACUUM FULL t").await;
    let links = || {
        let files = std::fs::read_dir(test.path("t")).unwrap();
        files.filter(|file| file.as_ref().unwrap().path().is_file()).count()
    };
    test.run("UPDATE t SET id = id + 1").await;
    test.run("VACUUM FULL t").await;
    test.run("DELETE FROM t WHERE id = 3").await;
    test.run("VACUUM").await;
    // Work in the background may have removed the file just now. The newest version has the other one.
    in_time(async || links() == 1).await;
    std::fs::create_dir_all(test.path("left")).unwrap();
    std::fs::write(test.path("left").join("0000000009.parquet"), b"").unwrap();
    std::fs::create_dir_all(test.path(".removed-t")).unwrap();
    test.run("CREATE TABLE u AS SELECT 1 AS id").await;
    test.run("DROP TABLE u").await;
    test.run("VACUUM FULL").await;
    let left = test.path("left").join("0000000009.parquet");
    in_time(async || !left.exists() && !test.path(".removed-t").exists()).await;
}
