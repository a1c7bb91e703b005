//! Checkpoints: new files have the rows that the old ones had, whatever was changed meanwhile, and the log is cut.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coscan_datafusion::{CoscanOptions, DatabaseOptions, ManagedDatabase};
use coscan_runtime::core::PolicyKind;
use datafusion::error::Result;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;

use super::durable::{another, session};
use super::{Fixture, MANY, load};
use crate::support::{TABLE_OPTIONS, execute, manager, run};

const ALL: &str = "SELECT id, key, text FROM t ORDER BY id";

const CHANGES: [&str; 4] = [
    "UPDATE t SET key = key + 1000, text = 'changed' WHERE id % 100 = 7",
    "DELETE FROM t WHERE id BETWEEN 500 AND 900",
    "INSERT INTO t SELECT -value, value, NULL FROM range(2, 300)",
    "UPDATE t SET text = NULL WHERE id BETWEEN -50 AND 50",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_changes_no_row_and_leaves_no_change() {
    let fixture = Fixture::filled().await;
    let table = fixture.database.table("t").unwrap().unwrap();
    for round in 0..3 {
        for sql in CHANGES.iter().take(if round == 0 { 4 } else { 2 }) {
            fixture.run(sql).await;
        }
        let before = fixture.run(ALL).await;
        let counts = fixture.database.checkpoint(&table).await.unwrap();
        assert_eq!((counts.files_written, counts.files_replaced), (1, 1));
        assert_eq!(counts.rows_written as usize, before.len());
        assert_eq!(fixture.run(ALL).await, before);
        let count = "SELECT count(*), min(id), max(id), count(text) FROM t";
        let direct = run(&fixture.session(), count).await;
        assert_eq!(fixture.run(count).await, direct);
        let again = fixture.database.checkpoint(&table).await.unwrap();
        assert_eq!(again, coscan_datafusion::CheckpointCounts::default(), "nothing is changed");
    }
    fixture.run("DELETE FROM t").await;
    let counts = fixture.database.checkpoint(&table).await.unwrap();
    assert_eq!((counts.files_written, counts.files_replaced), (0, 1));
    assert_eq!(fixture.run(ALL).await, [""; 0]);
    fixture.run("INSERT INTO t VALUES (1, 2, 'x')").await;
    assert_eq!(fixture.run(ALL).await, ["1 2 x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_is_changed_during_checkpoints_is_lost() {
    let fixture = Fixture::filled().await;
    let table = fixture.database.table("t").unwrap().unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let writers = (0..3_i64).map(|writer| {
        let (context, is_done) = (fixture.session(), Arc::clone(&is_done));
        tokio::spawn(async move {
            let mut done = 0;
            while !is_done.load(Ordering::Relaxed) {
                // Each has rows of its own, some of which come and go.
                let id = 1_000_000 + writer;
                let statements = [
                    format!("UPDATE t SET key = key + 1 WHERE id IN ({writer}, {writer} + 60000)"),
                    format!("INSERT INTO t VALUES ({id}, {done}, 'new')"),
                    format!("UPDATE t SET key = key + 1 WHERE id = {id}"),
                    format!("DELETE FROM t WHERE id = {id} AND key = {done} + 1"),
                ];
                for sql in statements {
                    run(&context, &sql).await;
                }
                done += 1;
            }
            done
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut replaced = 0;
    while replaced < 6 {
        replaced += fixture.database.checkpoint(&table).await.unwrap().files_replaced;
    }
    is_done.store(true, Ordering::Relaxed);
    for (writer, running) in (0..).zip(writers) {
        let done: i64 = running.await.unwrap();
        assert!(done > 0);
        let sql = format!("SELECT key FROM t WHERE id IN ({writer}, {writer} + 60000) ORDER BY id");
        assert_eq!(
            fixture.run(&sql).await,
            [(writer + done).to_string(), (writer + done).to_string()]
        );
    }
    assert_eq!(fixture.run("SELECT count(*) FROM t").await, [(MANY + 1).to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_goes_on_across_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT NOT NULL, \"key\" BIGINT, text VARCHAR)")
        .await
        .unwrap();
    execute(&context, &load("t", 0..MANY)).await.unwrap();
    execute(&context, "INSERT INTO t VALUES (-1, 0, 'in memory'), (-2, 0, 'in memory')")
        .await
        .unwrap();
    let other = another(&database);
    for sql in [
        "BEGIN",
        "UPDATE t SET key = 77 WHERE id IN (5, -1)",
        "DELETE FROM t WHERE id IN (6, -2)",
        "INSERT INTO t VALUES (-3, 3, 'new')",
    ] {
        execute(&context, sql).await.unwrap();
    }
    execute(&other, "UPDATE t SET key = 88 WHERE id = 8").await.unwrap();
    execute(&other, "VACUUM FULL t").await.unwrap();
    execute(&other, "UPDATE t SET key = 99 WHERE id = 9").await.unwrap();
    // It reads its own snapshot, in files that were replaced.
    let changed = "SELECT id, key FROM t WHERE id < 10 ORDER BY id";
    let mut own =
        vec!["-3 3", "-1 77", "0 0", "1 1", "2 2", "3 3", "4 4", "5 77", "7 7", "8 8", "9 9"];
    assert_eq!(run(&context, changed).await, own);
    execute(&context, "COMMIT").await.unwrap();
    (own[9], own[10]) = ("8 88", "9 99");
    assert_eq!(run(&other, changed).await, own);
    drop((database, context, other));
    let (_database, context) = session(directory.path()).await.unwrap();
    assert_eq!(run(&context, changed).await, own);
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [(MANY + 1).to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_found_across_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT)").await.unwrap();
    execute(&context, "INSERT INTO t SELECT value, 0 FROM range(0, 70000)").await.unwrap();
    let other = another(&database);
    execute(&context, "BEGIN").await.unwrap();
    execute(&context, "UPDATE t SET key = 1 WHERE id = 5").await.unwrap();
    execute(&other, "UPDATE t SET key = 2 WHERE id = 5").await.unwrap();
    execute(&other, "VACUUM FULL t").await.unwrap();
    let error = execute(&context, "COMMIT").await.unwrap_err().to_string();
    assert!(error.contains("committed first"), "{error}");
    assert_eq!(run(&other, "SELECT key FROM t WHERE id = 5").await, ["2"]);
}

fn files(directory: &Path, ending: &str) -> Vec<String> {
    let directories = [directory.to_owned(), directory.join("table-0"), directory.join("wal")];
    let names = directories.iter().flat_map(|directory| std::fs::read_dir(directory).unwrap());
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| name.ends_with(ending) || name.starts_with(ending)).collect();
    names.sort();
    names
}

/// Removes retired files until so many are left: work in the background may remove them, too, and tasks of a query that has
/// ended may still be reading.
async fn vacuum_until(context: &SessionContext, directory: &Path, count: usize) {
    let removed = async {
        while files(directory, ".parquet").len() != count {
            execute(context, "VACUUM").await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), removed).await.unwrap();
}

/// Opens a database when the work in its background has ended, without keeping files.
async fn opened_when_closed(directory: &Path) -> (ManagedDatabase, SessionContext) {
    let open = async {
        loop {
            match try_open(directory, Duration::ZERO).await {
                Ok(opened) => break opened,
                Err(error) => assert!(error.to_string().contains("is locked"), "{error}"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), open).await.unwrap()
}

async fn opened(directory: &Path, retention: Duration) -> (ManagedDatabase, SessionContext) {
    try_open(directory, retention).await.unwrap()
}

async fn try_open(
    directory: &Path,
    retention: Duration,
) -> Result<(ManagedDatabase, SessionContext)> {
    let coscan = CoscanOptions::new(&manager(PolicyKind::Relevance))
        .with_table_options(TABLE_OPTIONS)
        .with_direct_bytes_max(0);
    let options = DatabaseOptions { retention, ..DatabaseOptions::default() };
    let database = ManagedDatabase::open_with(coscan, directory, options).await?;
    let context = another(&database);
    Ok((database, context))
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_files_are_kept_for_their_time_and_for_those_who_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (database, context) = opened(path, Duration::from_secs(3600)).await;
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT)").await.unwrap();
    execute(&context, "INSERT INTO t SELECT value, 0 FROM range(0, 70000)").await.unwrap();
    execute(&context, "DELETE FROM t WHERE id < 10").await.unwrap();
    execute(&context, "VACUUM FULL").await.unwrap();
    assert_eq!(files(path, ".parquet").len(), 2);
    assert_eq!(files(path, "state-").len(), 1);
    drop((database, context));
    // Opening leaves it there, too.
    let (database, context) = opened(path, Duration::from_secs(3600)).await;
    execute(&context, "VACUUM").await.unwrap();
    assert_eq!(files(path, ".parquet").len(), 2);
    drop((database, context));
    let (database, context) = opened_when_closed(path).await;
    vacuum_until(&context, path, 1).await;

    // A query that runs has begun before the file is replaced.
    execute(&context, "SET datafusion.execution.target_partitions = 1").await.unwrap();
    let plan = context.sql("SELECT id FROM t").await.unwrap().create_physical_plan().await.unwrap();
    let mut rows = execute_stream(plan, context.task_ctx()).unwrap();
    let first = rows.try_next().await.unwrap().unwrap().num_rows();
    execute(&context, "DELETE FROM t WHERE id < 100").await.unwrap();
    execute(&context, "VACUUM FULL t").await.unwrap();
    assert_eq!(files(path, ".parquet").len(), 2);
    let rest: Vec<_> = rows.try_collect().await.unwrap();
    let rest: usize = rest.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(first + rest, 70_000 - 10);
    vacuum_until(&context, path, 1).await;
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [(70_000 - 100).to_string()]);
    drop((database, context));
    let (_database, context) = opened_when_closed(path).await;
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [(70_000 - 100).to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_written_to_files_in_the_background() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (database, context) = opened(path, Duration::ZERO).await;
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT)").await.unwrap();
    execute(&context, "INSERT INTO t SELECT value, 0 FROM range(0, 70000)").await.unwrap();
    let before = files(path, ".parquet");
    execute(&context, "UPDATE t SET key = 1 WHERE id % 5 = 0").await.unwrap();
    let replaced = async {
        while files(path, ".parquet") == before || files(path, ".parquet").len() > 1 {
            // Whatever is committed wakes it.
            execute(&context, "UPDATE t SET key = 2 WHERE id = 3").await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(120), replaced).await.unwrap();
    let sums = run(&context, "SELECT count(*), sum(key) FROM t").await;
    assert_eq!(sums, [format!("70000 {}", 14_000 + 2)]);
    drop((database, context));
    // It does not keep the database open.
    let reopened = async {
        let coscan = || CoscanOptions::new(&manager(PolicyKind::Relevance));
        while ManagedDatabase::open(coscan(), path).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reopened).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_vacuum_lacks_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, context) = session(directory.path()).await.unwrap();
    for (sql, reason) in [
        ("VACUUM REINDEX t", "an option of VACUUM"),
        ("VACUUM FULL u", "No table named 'u'"),
        ("VACUUM FULL v", "is not a table of a database"),
    ] {
        execute(&context, "CREATE OR REPLACE VIEW v AS SELECT 1").await.unwrap();
        let error = execute(&context, sql).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{sql}: {error}");
    }
    execute(&context, "BEGIN").await.unwrap();
    let error = execute(&context, "VACUUM").await.unwrap_err().to_string();
    assert!(error.contains("in a transaction"), "{error}");
}
