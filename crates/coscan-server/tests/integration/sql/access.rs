//! The access of users to tables and statements.

use arrow::array::AsArray;
use coscan_server::config::Limits;
use coscan_server::queries::ErrorKind;
use coscan_server::sql::Proof;

use crate::sql::fixture::Fixture;
use crate::support::{PASSWORD, ROWS};

#[tokio::test]
async fn a_user_reads_the_tables_granted_and_no_others() {
    let fixture = Fixture::new(Limits::default()).await;
    let (ann, bob) = (fixture.login("ann").await, fixture.login("bob").await);
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
    assert_eq!(fixture.number(&bob, "SELECT count(*) FROM secrets").await, ROWS);
    for sql in [
        "SELECT count(*) FROM secrets",
        "SELECT * FROM coscan.public.secrets",
        "EXPLAIN SELECT * FROM secrets",
        "SELECT id FROM numbers WHERE id IN (SELECT id FROM secrets)",
        "SELECT * FROM \"/etc/passwd\"",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM 'file:///etc/passwd'",
    ] {
        let error = fixture.error(&ann, sql).await;
        let kinds = [ErrorKind::UnknownTable, ErrorKind::Syntax];
        assert!(kinds.contains(&error.kind), "{sql}: {error:?}");
    }
    for listing in [
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'secrets'",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 'secrets'",
        "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'secrets'",
    ] {
        assert_eq!(fixture.number(&ann, listing).await, 0, "{listing}");
        assert!(fixture.number(&bob, listing).await > 0, "{listing}");
    }
}

#[tokio::test]
async fn a_wrong_password_or_name_is_refused() {
    let fixture = Fixture::new(Limits::default()).await;
    for (name, proof) in [
        ("ann", Proof::Password("Pencil")),
        ("ann", Proof::None),
        ("nobody", Proof::Password(PASSWORD)),
        ("", Proof::Password("")),
    ] {
        assert!(fixture.service.login(name, proof).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn nothing_but_reading_is_allowed() {
    let fixture = Fixture::new(Limits::default()).await;
    let root = fixture.login("root").await;
    for sql in [
        "COPY (SELECT 1) TO '/tmp/coscan-server-test'",
        "COPY numbers TO '/tmp/coscan-server-test'",
        "EXPLAIN COPY (SELECT 1) TO '/tmp/coscan-server-test'",
        "PREPARE x AS COPY (SELECT 1) TO '/tmp/coscan-server-test'",
        "PREPARE x AS SELECT 1",
        "EXECUTE x",
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/tmp'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE SCHEMA s",
        "CREATE DATABASE d",
        "CREATE FUNCTION f() RETURNS INT AS $$ SELECT 1 $$",
        "DROP TABLE numbers",
        "INSERT INTO numbers VALUES (1, 'a')",
        "EXPLAIN ANALYZE INSERT INTO numbers VALUES (1, 'a')",
        "UPDATE numbers SET id = 1",
        "DELETE FROM numbers",
        "TRUNCATE numbers",
        "SET datafusion.runtime.memory_limit = '1G'",
        "SET datafusion.runtime.temp_directory = '/'",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "LOAD 'x'",
    ] {
        fixture.error(&root, sql).await;
    }
    assert!(!std::path::Path::new("/tmp/coscan-server-test").exists());
    assert_eq!(fixture.number(&root, "SELECT count(*) FROM numbers").await, ROWS);
}

#[tokio::test]
async fn only_administrators_read_without_sharing() {
    let fixture = Fixture::new(Limits::default()).await;
    let root = fixture.login("root").await;
    fixture.rows(&root, "SET coscan.sharing = off").await.unwrap();
    let ann = fixture.login("ann").await;
    fixture.error(&ann, "SET coscan.sharing = off").await;
}

#[tokio::test]
async fn a_user_sees_the_own_role_only() {
    let fixture = Fixture::new(Limits::default()).await;
    for (name, is_admin) in [("ann", false), ("root", true)] {
        let session = fixture.login(name).await;
        let roles = fixture.rows(&session, "SELECT rolname, rolsuper FROM pg_roles").await.unwrap();
        assert_eq!(roles.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
        assert_eq!(roles[0].column(0).as_string::<i32>().value(0), name);
        assert_eq!(roles[0].column(1).as_boolean().value(0), is_admin);
    }
}
