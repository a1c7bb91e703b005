//! Changes of tables by clients: rights, transactions, counts, and rows that are copied in.

use std::path::Path;

use bytes::Bytes;
use coscan_server::config::Config;
use futures::SinkExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{code, texts};
use crate::support::server::{Running, start_as};
use crate::support::{PASSWORD, in_time};

/// A server with a database. Root may change all tables, Bob only `t`, Ann none.
fn with_database(config: &mut Config, directory: &Path) {
    config.database = Some(directory.join("main.db"));
    let users = config.users_file.as_ref().unwrap();
    let text = std::fs::read_to_string(users).unwrap();
    let of = |name: &str| format!("[users.\"{name}\"]\n");
    let text = text.replace(&of("root"), &format!("{}writes = \"*\"\n", of("root")));
    let text = text.replace(&of("bob"), &format!("{}writes = [\"t\"]\n", of("bob")));
    let text = text.replace("tables = [\"numbers\"]", "tables = [\"numbers\", \"t\"]");
    assert!(text.contains("writes = \"*\"") && text.contains("writes = [\"t\"]"), "{text}");
    std::fs::write(users, text).unwrap();
}

async fn started() -> (Running, Client) {
    let running = start_as(with_database).await;
    let root = running.login("root").await;
    root.batch_execute("CREATE TABLE t (id BIGINT NOT NULL, n INT, text VARCHAR)").await.unwrap();
    root.batch_execute("CREATE TABLE u AS SELECT id FROM numbers WHERE id < 10").await.unwrap();
    (running, root)
}

/// The number of changed rows that a command reports.
async fn changed(client: &Client, sql: &str) -> u64 {
    match &client.simple_query(sql).await.unwrap()[..] {
        [SimpleQueryMessage::CommandComplete(rows)] => *rows,
        other => panic!("{sql}: {other:?}"),
    }
}

async fn refused(client: &Client, sql: &str) -> (SqlState, String) {
    let error = client.simple_query(sql).await.expect_err(sql);
    (code(&error), error.as_db_error().unwrap().message().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_report_how_many_rows_they_changed() {
    let (_running, root) = started().await;
    for (sql, rows) in [
        ("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, NULL), (3, NULL, 'three')", 3),
        ("UPDATE t SET n = n + 1 WHERE id < 3", 2),
        ("DELETE FROM t WHERE id = 3", 1),
        ("DELETE FROM t WHERE id = 77", 0),
        (
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET text = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)",
            10,
        ),
    ] {
        assert_eq!(changed(&root, sql).await, rows, "{sql}");
    }
    let rows = texts(
        &root,
        "SELECT id || ' ' || coalesce(n, -1) || ' ' || coalesce(text, '') FROM t ORDER BY id",
    )
    .await;
    assert_eq!(rows.unwrap()[..4], ["0 -1 ", "1 11 m", "2 21 m", "3 -1 "]);
    // Prepared statements have parameters of the types of the columns.
    let insert = root.prepare("INSERT INTO t VALUES ($1, $2, $3)").await.unwrap();
    for id in 100..110_i64 {
        let rows = root.execute(&insert, &[&id, &7_i32, &format!("row {id}")]).await.unwrap();
        assert_eq!(rows, 1);
    }
    let update = root.prepare("UPDATE t SET n = $2 WHERE id = $1").await.unwrap();
    assert_eq!(root.execute(&update, &[&105_i64, &8_i32]).await.unwrap(), 1);
    let delete = root.prepare("DELETE FROM t WHERE id = $1").await.unwrap();
    assert_eq!(root.execute(&delete, &[&106_i64]).await.unwrap(), 1);
    assert_eq!(root.execute(&delete, &[&106_i64]).await.unwrap(), 0);
    let sum = "SELECT count(*) || ' ' || sum(n) FROM t WHERE id >= 100";
    assert_eq!(texts(&root, sum).await.unwrap(), ["9 64"]);
    root.batch_execute("TRUNCATE TABLE u").await.unwrap();
    assert_eq!(texts(&root, "SELECT count(*) FROM u").await.unwrap(), ["0"]);
    root.batch_execute("VACUUM FULL t").await.unwrap();
    assert_eq!(texts(&root, sum).await.unwrap(), ["9 64"]);
    root.batch_execute("DROP TABLE u").await.unwrap();
    assert_eq!(refused(&root, "SELECT * FROM u").await.0, SqlState::UNDEFINED_TABLE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_need_the_right_to_them() {
    let (running, root) = started().await;
    let (ann, bob) = (running.login("ann").await, running.login("bob").await);
    assert_eq!(changed(&bob, "INSERT INTO t VALUES (1, 1, 'bob')").await, 1);
    let forbidden = SqlState::INSUFFICIENT_PRIVILEGE;
    for sql in [
        "INSERT INTO t VALUES (2, 2, 'ann')",
        "UPDATE t SET n = 5",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "EXPLAIN ANALYZE DELETE FROM t",
        "MERGE INTO t USING numbers ON t.id = numbers.id WHEN MATCHED THEN DELETE",
        "DROP TABLE t",
        "CREATE TABLE v (id INT)",
        "VACUUM FULL t",
        "COPY t FROM STDIN",
    ] {
        let (code, text) = refused(&ann, sql).await;
        assert_eq!(code, forbidden, "{sql}: {text}");
        assert!(text.contains("writes"), "{sql}: {text}");
    }
    assert_eq!(refused(&ann, "SELECT * FROM u").await.0, SqlState::UNDEFINED_TABLE);
    assert_eq!(refused(&ann, "INSERT INTO u VALUES (1)").await.0, SqlState::UNDEFINED_TABLE);
    for sql in ["INSERT INTO u VALUES (1)", "DROP TABLE t", "CREATE TABLE v (id INT)", "VACUUM"] {
        assert_eq!(refused(&bob, sql).await.0, forbidden, "{sql}");
    }
    // Nobody changes files.
    for sql in [
        "INSERT INTO numbers VALUES (1, 'x')",
        "DELETE FROM numbers",
        "COPY numbers TO '/tmp/x.parquet'",
        "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/tmp/x.parquet'",
        "CREATE VIEW x AS SELECT 1",
        "DROP TABLE numbers",
    ] {
        assert!(root.simple_query(sql).await.is_err(), "{sql}");
    }
    assert_eq!(texts(&root, "SELECT count(*) FROM t").await.unwrap(), ["1"]);
    assert_eq!(texts(&ann, "SELECT text FROM t").await.unwrap(), ["bob"]);
    let listed =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";
    assert_eq!(texts(&ann, listed).await.unwrap(), ["numbers", "t"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_are_isolated_and_end_as_clients_expect() {
    let (running, mut root) = started().await;
    let mut bob = running.login("bob").await;
    changed(&root, "INSERT INTO t VALUES (1, 0, NULL), (2, 0, NULL)").await;
    let sum = "SELECT sum(n) FROM t";

    let transaction = root.transaction().await.unwrap();
    transaction.execute("UPDATE t SET n = 5 WHERE id = 1", &[]).await.unwrap();
    assert_eq!(transaction.query_one(sum, &[]).await.unwrap().get::<_, i64>(0), 5);
    assert_eq!(texts(&bob, sum).await.unwrap(), ["0"], "it is not committed");
    transaction.commit().await.unwrap();
    assert_eq!(texts(&bob, sum).await.unwrap(), ["5"]);

    let transaction = root.transaction().await.unwrap();
    transaction.execute("UPDATE t SET n = 50 WHERE id = 1", &[]).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(texts(&root, sum).await.unwrap(), ["5"]);

    // The second of two that changed the same row fails at its end, and is over then.
    root.batch_execute("BEGIN; UPDATE t SET n = 6 WHERE id = 1").await.unwrap();
    assert_eq!(changed(&bob, "UPDATE t SET n = 7 WHERE id = 1").await, 1);
    assert_eq!(refused(&root, "COMMIT").await.0, SqlState::T_R_SERIALIZATION_FAILURE);
    assert_eq!(texts(&root, sum).await.unwrap(), ["7"]);

    // A failed statement fails its transaction.
    root.batch_execute("BEGIN; UPDATE t SET n = 100 WHERE id = 2").await.unwrap();
    let (_, text) = refused(&root, "INSERT INTO t VALUES (NULL, 1, NULL)").await;
    assert!(text.contains("column id of table t is NOT NULL: give it a value"), "{text}");
    assert_eq!(refused(&root, "SELECT 1").await.0, SqlState::IN_FAILED_SQL_TRANSACTION);
    root.batch_execute("COMMIT").await.unwrap();
    assert_eq!(texts(&root, sum).await.unwrap(), ["7"]);

    // Savepoints.
    let mut transaction = bob.transaction().await.unwrap();
    transaction.execute("UPDATE t SET n = 1 WHERE id = 1", &[]).await.unwrap();
    let saved = transaction.transaction().await.unwrap();
    saved.execute("UPDATE t SET n = 2 WHERE id = 1", &[]).await.unwrap();
    saved.rollback().await.unwrap();
    transaction.execute("UPDATE t SET n = 3 WHERE id = 2", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(texts(&root, "SELECT n FROM t ORDER BY id").await.unwrap(), ["1", "3"]);

    // One that is not ended is rolled back with its connection.
    bob.batch_execute("BEGIN; DELETE FROM t").await.unwrap();
    drop(bob);
    assert_eq!(texts(&root, "SELECT count(*) FROM t").await.unwrap(), ["2"]);
    let refusals = ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT * FROM t FOR UPDATE"];
    for sql in refusals {
        assert_eq!(refused(&root, sql).await.0, SqlState::FEATURE_NOT_SUPPORTED, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_sees_one_moment_also_after_its_savepoints() {
    let (running, root) = started().await;
    let bob = running.login("bob").await;
    changed(&root, "INSERT INTO t VALUES (1, 1, NULL)").await;
    root.batch_execute("BEGIN; SAVEPOINT s").await.unwrap();
    assert_eq!(texts(&root, "SELECT n FROM t").await.unwrap(), ["1"]);
    root.batch_execute("ROLLBACK TO s").await.unwrap();
    changed(&bob, "UPDATE t SET n = 11").await;
    assert_eq!(texts(&root, "SELECT n FROM t").await.unwrap(), ["1"]);
    root.batch_execute("UPDATE t SET n = 2").await.unwrap();
    assert_eq!(refused(&root, "COMMIT").await.0, SqlState::T_R_SERIALIZATION_FAILURE);
    assert_eq!(texts(&bob, "SELECT n FROM t").await.unwrap(), ["11"]);

    // Names are those of PostgreSQL, and there are not too many.
    root.batch_execute("BEGIN; INSERT INTO t VALUES (2, 2, NULL); SAVEPOINT Abc").await.unwrap();
    root.batch_execute("DELETE FROM t; ROLLBACK TO abc; COMMIT").await.unwrap();
    assert_eq!(texts(&bob, "SELECT count(*) FROM t").await.unwrap(), ["2"]);
    assert_eq!(refused(&root, "ROLLBACK TO abc").await.0, SqlState::S_E_INVALID_SPECIFICATION);
    let many = format!("BEGIN; {}", "SAVEPOINT s; ".repeat(1001));
    assert_eq!(refused(&root, &many).await.0, SqlState::STATEMENT_TOO_COMPLEX);
    root.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clauses_hold_or_are_refused() {
    let (_running, root) = started().await;
    changed(&root, "INSERT INTO t VALUES (1, 1, NULL)").await;
    for begin in [
        "BEGIN READ ONLY",
        "BEGIN; SET TRANSACTION READ ONLY",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; BEGIN",
    ] {
        root.batch_execute(begin).await.unwrap();
        assert_eq!(texts(&root, "SELECT n FROM t").await.unwrap(), ["1"]);
        let (state, text) = refused(&root, "DELETE FROM t").await;
        assert_eq!(state, SqlState::READ_ONLY_SQL_TRANSACTION, "{begin}: {text}");
        root.batch_execute("ROLLBACK").await.unwrap();
    }
    assert_eq!(refused(&root, "DELETE FROM t").await.0, SqlState::READ_ONLY_SQL_TRANSACTION);
    root.batch_execute("BEGIN READ WRITE; UPDATE t SET n = 2; COMMIT").await.unwrap();
    let back = "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE";
    root.batch_execute(back).await.unwrap();
    changed(&root, "UPDATE t SET n = 3").await;
    for sql in [
        "COMMIT AND CHAIN",
        "ROLLBACK AND CHAIN",
        "CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a * 2) STORED)",
    ] {
        assert_eq!(refused(&root, sql).await.0, SqlState::FEATURE_NOT_SUPPORTED, "{sql}");
    }
    root.batch_execute("DROP TABLE IF EXISTS nope").await.unwrap();
    assert_eq!(refused(&root, "DROP TABLE nope").await.0, SqlState::UNDEFINED_TABLE);
    let shown = ["transaction_read_only", "transaction_isolation"];
    for (name, value) in shown.into_iter().zip(["off", "repeatable read"]) {
        assert_eq!(texts(&root, &format!("SHOW {name}")).await.unwrap(), [value]);
    }
    root.batch_execute("CREATE TABLE b (x BYTEA)").await.unwrap();
    let error = copy(&root, "COPY b FROM STDIN", &[]).await.unwrap_err();
    assert_eq!(code(&error), SqlState::FEATURE_NOT_SUPPORTED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_client_that_sends_nothing_is_cancelled() {
    let (running, root) = started().await;
    let sink = root.copy_in::<_, Bytes>("COPY t FROM STDIN").await.unwrap();
    let queries = || running.server.sql_service().queries().counts();
    assert_eq!(queries(), (1, 0));
    root.cancel_token().cancel_query(tokio_postgres::NoTls).await.unwrap();
    in_time(async {
        while queries() != (0, 0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut sink = Box::pin(sink);
    assert_eq!(code(&sink.as_mut().finish().await.unwrap_err()), SqlState::QUERY_CANCELED);
}

/// Copies rows in pieces.
async fn copy(client: &Client, sql: &str, pieces: &[&str]) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(sql).await?;
    let mut sink = std::pin::pin!(sink);
    for piece in pieces {
        sink.send(Bytes::copy_from_slice(piece.as_bytes())).await?;
    }
    sink.finish().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_copied_in() {
    let (running, root) = started().await;
    let rows =
        copy(&root, "COPY t FROM STDIN", &["1\t10\tone\n2\t\\N", "\ttab\\there\n3\t30\t\\N\n"])
            .await;
    assert_eq!(rows.unwrap(), 3);
    let csv = "COPY t (text, id) FROM STDIN WITH (FORMAT csv, HEADER)";
    let rows = copy(&root, csv, &["text,id\n\"a, \"\"b\"\"\",4\n,5\n\"\",6\n"]).await;
    assert_eq!(rows.unwrap(), 3);
    let all =
        "SELECT id || ' ' || coalesce(n, -1) || ' ' || coalesce(text, 'NULL') FROM t ORDER BY id";
    let expected =
        ["1 10 one", "2 -1 tab\there", "3 30 NULL", "4 -1 a, \"b\"", "5 -1 NULL", "6 -1 "];
    assert_eq!(texts(&root, all).await.unwrap(), expected);
    for (sql, rows, expected) in [
        ("COPY t FROM STDIN", "7\tx\ty\n", "Cannot cast string 'x'"),
        ("COPY t FROM STDIN", "7\t1\n", "row 1 of COPY has 2 of 3 columns"),
        ("COPY t (n) FROM STDIN", "7\n", "column id of table t is NOT NULL"),
    ] {
        let error = in_time(copy(&root, sql, &[rows])).await.unwrap_err();
        let text = error.as_db_error().unwrap().message();
        assert!(text.contains(expected), "{text}");
        // The connection goes on.
        assert_eq!(texts(&root, "SELECT count(*) FROM t").await.unwrap(), ["6"]);
    }
    for (sql, state) in [
        ("COPY nope FROM STDIN", SqlState::UNDEFINED_TABLE),
        ("COPY t (nope) FROM STDIN", SqlState::UNDEFINED_COLUMN),
        ("COPY numbers FROM STDIN", SqlState::INSUFFICIENT_PRIVILEGE),
        ("COPY t FROM STDIN (FORMAT binary)", SqlState::FEATURE_NOT_SUPPORTED),
        ("COPY t FROM '/tmp/x'", SqlState::FEATURE_NOT_SUPPORTED),
    ] {
        // The client sends Sync twice, and is not ready for two answers.
        let client = running.login("root").await;
        let error = copy(&client, sql, &[]).await.unwrap_err();
        assert_eq!(code(&error), state, "{sql}");
    }
    // However many rows were right before.
    let many: String = (0..24_577).map(|id| format!("{id}\t1\tx\n")).collect();
    for _ in 0..5 {
        let wrong = in_time(copy(&root, "COPY t FROM STDIN", &[&many, "x\n"])).await;
        assert!(wrong.is_err());
        let client = running.login("root").await;
        let mut sink = Box::pin(client.copy_in("COPY t FROM STDIN").await.unwrap());
        sink.send(Bytes::from(many.clone())).await.unwrap();
        drop((sink, client));
    }
    assert_eq!(texts(&root, "SELECT count(*) FROM t").await.unwrap(), ["6"]);
    // In a transaction, and many.
    root.batch_execute("BEGIN").await.unwrap();
    let lines: Vec<_> = (100..100_100).map(|id| format!("{id}\t1\tx\n")).collect();
    let pieces: Vec<_> = lines.chunks(5000).map(|lines| lines.concat()).collect();
    let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
    assert_eq!(copy(&root, "COPY t FROM STDIN", &pieces).await.unwrap(), 100_000);
    let other = running.login("bob").await;
    assert_eq!(texts(&other, "SELECT count(*) FROM t").await.unwrap(), ["6"]);
    root.batch_execute("COMMIT").await.unwrap();
    assert_eq!(texts(&other, "SELECT count(*), sum(id) FROM t").await.unwrap(), ["100006"]);
    // A client that is gone has copied nothing.
    let sink = other.copy_in("COPY t FROM STDIN").await.unwrap();
    let mut sink = Box::pin(sink);
    sink.send(Bytes::from_static(b"5\t5\tgone\n")).await.unwrap();
    drop((sink, other));
    assert_eq!(texts(&root, "SELECT count(*) FROM t WHERE text = 'gone'").await.unwrap(), ["0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_there_after_a_restart_and_the_database_has_one_server() {
    let (running, root) = started().await;
    changed(&root, "INSERT INTO t VALUES (1, 10, 'one')").await;
    let directory = running.tables.directory.path().join("main.db");
    let mut config = Config::default();
    config.listen.postgres = Some("127.0.0.1:0".parse().unwrap());
    (config.insecure, config.database) = (true, Some(directory));
    let error = coscan_server::Server::start(&config).await.unwrap_err().to_string();
    assert!(error.contains("is locked"), "{error}");
    drop(root);
    running.server.stop(std::time::Duration::ZERO, std::future::pending()).await;
    let server = in_time(async {
        loop {
            match coscan_server::Server::start(&config).await {
                Ok(server) => break server,
                Err(error) => assert!(error.to_string().contains("is locked"), "{error}"),
            }
        }
    })
    .await;
    let mut client = tokio_postgres::Config::new();
    client.host("127.0.0.1").port(server.postgres.unwrap().port()).user("me").password(PASSWORD);
    client.dbname("coscan");
    let (client, connection) = client.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(texts(&client, "SELECT text FROM t").await.unwrap(), ["one"]);
    // Whose name nobody has checked changes nothing.
    let (state, _) = refused(&client, "DELETE FROM t").await;
    assert_eq!(state, SqlState::INSUFFICIENT_PRIVILEGE);
}
