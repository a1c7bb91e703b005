//! Databases in directories: what is there after they were opened again, and transactions of several statements.

use std::path::Path;

use coscan_datafusion::{CoscanOptions, ManagedDatabase};
use coscan_runtime::core::PolicyKind;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::{MANY, load};
use crate::support::{TABLE_OPTIONS, execute, manager, run, shared};

/// A session with the tables of the database in a directory.
pub(super) async fn session(directory: &Path) -> Result<(ManagedDatabase, SessionContext)> {
    let manager = manager(PolicyKind::Relevance);
    let coscan =
        CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
    let database = ManagedDatabase::open(coscan, directory).await?;
    let context = another(&database);
    Ok((database, context))
}

pub(super) fn another(database: &ManagedDatabase) -> SessionContext {
    let context = shared(&manager(PolicyKind::Relevance));
    database.add_to(&context).unwrap();
    context
}

async fn error_of(context: &SessionContext, sql: &str) -> String {
    execute(context, sql).await.expect_err(sql).to_string()
}

const SUMMARY: &str = "SELECT count(*), sum(id), sum(\"key\"), count(text), max(text) FROM t";

#[tokio::test(flavor = "multi_thread")]
async fn a_database_has_its_rows_after_it_was_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.db");
    let (database, context) = session(&path).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT NOT NULL, \"key\" BIGINT, text VARCHAR)")
        .await
        .unwrap();
    execute(&context, &load("t", 0..MANY)).await.unwrap();
    execute(&context, "INSERT INTO t VALUES (-1, NULL, 'in the log'), (-2, 5, NULL)")
        .await
        .unwrap();
    execute(&context, "UPDATE t SET \"key\" = \"key\" + 1000, text = 'changed' WHERE id % 100 = 7")
        .await
        .unwrap();
    execute(&context, "DELETE FROM t WHERE id BETWEEN 500 AND 900 OR id = -2").await.unwrap();
    execute(&context, "CREATE TABLE u AS SELECT id, text FROM t WHERE id < 10").await.unwrap();
    let before = run(&context, SUMMARY).await;
    drop((database, context));
    let (database, context) = session(&path).await.unwrap();
    assert_eq!(run(&context, SUMMARY).await, before);
    assert_eq!(run(&context, "SELECT count(*) FROM u").await, ["11"]);
    execute(&context, "UPDATE t SET text = 'again' WHERE id IN (7, -1)").await.unwrap();
    execute(&context, "DROP TABLE u").await.unwrap();
    drop((database, context));
    let (_database, context) = session(&path).await.unwrap();
    let again = "SELECT id, text FROM t WHERE text = 'again' ORDER BY id";
    assert_eq!(run(&context, again).await, ["-1 again", "7 again"]);
    assert!(context.sql("SELECT * FROM u").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_open_in_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let open = session(directory.path()).await.unwrap();
    let error = session(directory.path()).await.err().unwrap().to_string();
    assert!(error.contains("locked") && error.contains("cannot be opened"), "{error}");
    drop(open);
    session(directory.path()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_no_table_has_are_removed_at_opening() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT, text VARCHAR)").await.unwrap();
    execute(&context, &load("t", 0..MANY)).await.unwrap();
    drop((database, context));
    let files = || {
        let files = std::fs::read_dir(directory.path().join("table-0")).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(files().len(), 1);
    for unused in ["0000000099.parquet", "0000000099.parquet.temporary"] {
        std::fs::write(directory.path().join("table-0").join(unused), b"unused").unwrap();
    }
    let (_database, context) = session(directory.path()).await.unwrap();
    assert_eq!(files().len(), 1);
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [MANY.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_insert_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT, text VARCHAR)").await.unwrap();
    let insert = "INSERT INTO t SELECT value, 1 / (value - 199999), NULL FROM range(0, 200000)";
    let error = error_of(&context, insert).await.to_lowercase();
    assert!(error.contains("divide by zero"), "{error}");
    let files = std::fs::read_dir(directory.path().join("table-0"));
    assert_eq!(files.map_or(0, Iterator::count), 0);
    let error =
        error_of(&context, "CREATE TABLE u AS SELECT 1 / (value - 5) AS x FROM range(0, 10)").await;
    assert!(error.to_lowercase().contains("divide by zero"), "{error}");
    assert_eq!(
        context.catalog("datafusion").unwrap().schema("public").unwrap().table_names(),
        ["t"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_transaction_are_committed_together() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    let other = another(&database);
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT, text VARCHAR)").await.unwrap();
    execute(&context, "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')").await.unwrap();
    let sum = "SELECT sum(\"key\"), count(*) FROM t";
    for (end, expected) in [("ROLLBACK", ["30 2"]), ("COMMIT", ["38 3"])] {
        execute(&context, "BEGIN").await.unwrap();
        execute(&context, "UPDATE t SET \"key\" = \"key\" + 1").await.unwrap();
        execute(&context, "INSERT INTO t VALUES (3, 5, 'c')").await.unwrap();
        execute(&context, "UPDATE t SET \"key\" = \"key\" + 1 WHERE id = 3").await.unwrap();
        assert_eq!(run(&context, sum).await, ["38 3"], "its own changes");
        assert_eq!(run(&other, sum).await, ["30 2"], "before {end}");
        execute(&context, end).await.unwrap();
        assert_eq!(run(&other, sum).await, expected, "after {end}");
        assert_eq!(run(&context, sum).await, expected, "after {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_sees_the_moment_of_its_first_statement_and_conflicts() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    let other = another(&database);
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT)").await.unwrap();
    execute(&context, "INSERT INTO t VALUES (1, 10), (2, 20)").await.unwrap();
    execute(&context, "START TRANSACTION").await.unwrap();
    assert_eq!(run(&context, "SELECT sum(\"key\") FROM t").await, ["30"]);
    execute(&other, "UPDATE t SET \"key\" = 0 WHERE id = 1").await.unwrap();
    assert_eq!(run(&context, "SELECT sum(\"key\") FROM t").await, ["30"]);
    execute(&context, "UPDATE t SET \"key\" = \"key\" * 2 WHERE id = 1").await.unwrap();
    let error = error_of(&context, "COMMIT").await;
    assert!(error.contains("committed first"), "{error}");
    assert_eq!(run(&context, "SELECT sum(\"key\") FROM t").await, ["20"]);
    let error = error_of(&context, "COMMIT").await;
    assert!(error.contains("BEGIN"), "{error}");
    // A statement that fails leaves the transaction as it was before.
    execute(&context, "BEGIN").await.unwrap();
    execute(&context, "UPDATE t SET \"key\" = 7 WHERE id = 2").await.unwrap();
    error_of(&context, "UPDATE t SET \"key\" = 1 / (id - id)").await;
    assert!(error_of(&context, "BEGIN").await.contains("begun already"));
    execute(&context, "COMMIT").await.unwrap();
    assert_eq!(run(&other, "SELECT sum(\"key\") FROM t").await, ["7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn write_skew_is_possible() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    let other = another(&database);
    execute(&context, "CREATE TABLE doctors (name VARCHAR, on_call BOOLEAN)").await.unwrap();
    execute(&context, "INSERT INTO doctors VALUES ('Ann', true), ('Bob', true)").await.unwrap();
    let leave = |name| {
        format!(
            "UPDATE doctors SET on_call = false \
             WHERE name = '{name}' AND (SELECT count(*) FROM doctors WHERE on_call) > 1"
        )
    };
    for (session, name) in [(&context, "Ann"), (&other, "Bob")] {
        execute(session, "BEGIN").await.unwrap();
        execute(session, &leave(name)).await.unwrap();
    }
    execute(&context, "COMMIT").await.unwrap();
    execute(&other, "COMMIT").await.unwrap();
    assert_eq!(run(&context, "SELECT count(*) FROM doctors WHERE on_call").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_database_lacks_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT)").await.unwrap();
    execute(&context, "CREATE TABLE IF NOT EXISTS t (other BIGINT)").await.unwrap();
    for (sql, part) in [
        ("CREATE TABLE t (id BIGINT)", "exists already"),
        ("CREATE TABLE u (id BIGINT PRIMARY KEY)", "PRIMARY KEY"),
        ("CREATE TABLE u (id BIGINT DEFAULT 5)", "DEFAULT"),
        ("BEGIN READ ONLY", "READ ONLY"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "REPEATABLE READ"),
        ("SELECT * FROM t FOR UPDATE", "FOR UPDATE"),
        ("SAVEPOINT s", "SAVEPOINT: roll back"),
        ("ROLLBACK", "BEGIN"),
    ] {
        let error = error_of(&context, sql).await;
        assert!(error.contains(part), "{sql}: {error}");
    }
    run(&context, "CREATE VIEW w AS SELECT 1 AS x").await;
    assert!(error_of(&context, "CREATE TABLE w (id BIGINT)").await.contains("exists already"));
    execute(&context, "BEGIN").await.unwrap();
    assert!(error_of(&context, "CREATE TABLE u (id BIGINT)").await.contains("in a transaction"));
    execute(&context, "ROLLBACK").await.unwrap();
    let nested = error_of(&context, "SELECT * FROM (SELECT * FROM t FOR UPDATE) AS u").await;
    assert!(nested.contains("FOR UPDATE"), "{nested}");
    execute(&context, "CREATE OR REPLACE TABLE t AS SELECT 'text' AS name").await.unwrap();
    assert_eq!(run(&context, "SELECT * FROM t").await, ["text"]);
    execute(&context, "CREATE VIEW v AS SELECT name FROM t").await.unwrap();
    assert_eq!(run(&context, "SELECT * FROM v").await, ["text"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_must_write_the_same_row_to_prevent_write_skew() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    let other = another(&database);
    execute(&context, "CREATE TABLE shifts (day INT, doctors INT)").await.unwrap();
    execute(&context, "INSERT INTO shifts VALUES (1, 2)").await.unwrap();
    for session in [&context, &other] {
        execute(session, "BEGIN").await.unwrap();
        let leave = "UPDATE shifts SET doctors = doctors - 1 WHERE day = 1 AND doctors > 1";
        execute(session, leave).await.unwrap();
    }
    execute(&context, "COMMIT").await.unwrap();
    assert!(error_of(&other, "COMMIT").await.contains("committed first"));
    assert_eq!(run(&context, "SELECT doctors FROM shifts").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_replaced_by_a_query_of_itself_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let (database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT, text VARCHAR)").await.unwrap();
    execute(&context, &load("t", 0..MANY)).await.unwrap();
    execute(&context, "DELETE FROM t WHERE id >= 10").await.unwrap();
    let fails = "CREATE OR REPLACE TABLE t AS SELECT 1 / (id - 5) AS x FROM t";
    let error = error_of(&context, fails).await;
    assert!(error.to_lowercase().contains("divide by zero"), "{error}");
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, ["10"]);
    execute(&context, "CREATE OR REPLACE TABLE t AS SELECT id, text FROM t WHERE id > 3")
        .await
        .unwrap();
    let rows = "SELECT count(*), min(text), max(id) FROM t";
    assert_eq!(run(&context, rows).await, ["6 text 4 9"]);
    drop((database, context));
    let (_database, context) = session(directory.path()).await.unwrap();
    assert_eq!(run(&context, rows).await, ["6 text 4 9"]);
}

#[tokio::test]
async fn a_transaction_is_one_of_a_single_database() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (_one, context) = session(directories[0].path()).await.unwrap();
    let (other, other_context) = session(directories[1].path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT)").await.unwrap();
    execute(&other_context, "CREATE TABLE u (id BIGINT)").await.unwrap();
    let table = other.table("u").unwrap().unwrap();
    context.register_table("u", std::sync::Arc::new(table)).unwrap();
    execute(&context, "BEGIN").await.unwrap();
    execute(&context, "INSERT INTO t VALUES (1)").await.unwrap();
    let error = error_of(&context, "INSERT INTO u VALUES (1)").await;
    assert!(error.contains("COMMIT or ROLLBACK"), "{error}");
    execute(&context, "COMMIT").await.unwrap();
    execute(&context, "INSERT INTO u SELECT id FROM t").await.unwrap();
    assert_eq!(run(&other_context, "SELECT * FROM u").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_of_the_database_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (database, context) = session(path).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT, \"key\" BIGINT, text VARCHAR)").await.unwrap();
    execute(&context, &load("t", 0..MANY)).await.unwrap();
    drop((database, context));
    std::fs::create_dir(path.join("table-precious")).unwrap();
    let foreign = ["table-precious/0000000001.parquet", "table-0/notes.txt", "table-7"];
    for file in foreign {
        std::fs::write(path.join(file), b"mine").unwrap();
    }
    drop(session(&path.join("../").join(path.file_name().unwrap())).await.unwrap());
    assert!(foreign.iter().all(|file| path.join(file).exists()));
    // Without the log nothing is known of the files.
    std::fs::rename(path.join("wal"), path.join("elsewhere")).unwrap();
    let error = session(path).await.err().unwrap().to_string();
    assert!(error.contains("restore the directory wal"), "{error}");
    std::fs::remove_dir_all(path.join("wal")).unwrap();
    std::fs::rename(path.join("elsewhere"), path.join("wal")).unwrap();
    let (_database, context) = session(path).await.unwrap();
    assert_eq!(run(&context, "SELECT count(*) FROM t").await, [MANY.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_dropped_by_drop_table_only_and_not_in_a_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, context) = session(directory.path()).await.unwrap();
    execute(&context, "CREATE TABLE t (id BIGINT)").await.unwrap();
    let error = error_of(&context, "CREATE OR REPLACE VIEW t AS SELECT 1 AS x").await;
    assert!(error.contains("DROP TABLE it first"), "{error}");
    execute(&context, "BEGIN").await.unwrap();
    assert!(error_of(&context, "DROP TABLE t").await.contains("in a transaction"));
    execute(&context, "ROLLBACK").await.unwrap();
    execute(&context, "DROP TABLE t").await.unwrap();
    execute(&context, "DROP TABLE IF EXISTS t").await.unwrap();
    assert!(error_of(&context, "SELECT * FROM t").await.contains("not found"));
}
