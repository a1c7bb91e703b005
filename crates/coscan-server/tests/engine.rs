//! SQL for users who may read some tables, in process.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use coscan_server::config::Limits;
use coscan_server::engine::{Engine, Proof, Session, Sql};
use coscan_server::queries::{ErrorKind, QueryError, RunningQuery};
use datafusion::common::{ParamValues, ScalarValue};
use futures::{StreamExt, TryStreamExt};
use support::{PASSWORD, ROWS, Tables};

/// Takes hours, and gives rows at once.
const LONG: &str = "SELECT a.id FROM numbers a, numbers b, numbers c";

struct Fixture {
    _tables: Tables,
    engine: Arc<Engine>,
}

impl Fixture {
    async fn new(limits: Limits) -> Self {
        let tables = Tables::new();
        let engine = tables.engine(&limits).await;
        Self { _tables: tables, engine }
    }

    async fn login(&self, name: &str) -> Session {
        self.engine.login(name, Proof::Password(PASSWORD)).await.unwrap()
    }

    async fn start(&self, session: &Session, sql: &str) -> Result<RunningQuery, QueryError> {
        let planned = self.engine.plan(session, Sql::Text(sql)).await?;
        self.engine.run(session, planned, ParamValues::List(Vec::new())).await
    }

    async fn rows(&self, session: &Session, sql: &str) -> Result<Vec<RecordBatch>, QueryError> {
        self.start(session, sql).await?.try_collect().await
    }

    async fn number(&self, session: &Session, sql: &str) -> i64 {
        let batches = self.rows(session, sql).await.unwrap();
        let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
        batch.column(0).as_primitive::<Int64Type>().value(0)
    }

    async fn error(&self, session: &Session, sql: &str) -> QueryError {
        match self.rows(session, sql).await {
            Ok(batches) => panic!("{sql} succeeded: {batches:?}"),
            Err(error) => error,
        }
    }
}

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
        assert!(fixture.engine.login(name, proof).await.is_err(), "{name}");
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
async fn values_are_bounded_with_each_mention_of_their_parameter() {
    let fixture = Fixture::new(Limits::default()).await;
    let ann = fixture.login("ann").await;
    let mentions = |count| vec!["$1"; count].join(", ");
    let value = || vec![ScalarValue::from("x".repeat(1 << 20).as_str())];
    for (count, is_right) in [(10, true), (100, false)] {
        let sql = format!("SELECT id FROM numbers WHERE word IN ({})", mentions(count));
        let planned = fixture.engine.plan(&ann, Sql::Text(&sql)).await.unwrap();
        let bound = planned.bind(value()).map(|bound| bound.bytes() > 10 << 20);
        let ran = fixture.engine.run(&ann, planned, ParamValues::from(value())).await.map(|_| true);
        for outcome in [bound, ran] {
            let kind = outcome.map_err(|error| error.kind);
            assert_eq!(
                kind,
                if is_right { Ok(true) } else { Err(ErrorKind::TooComplex) },
                "{count}"
            );
        }
    }
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
async fn parameters_have_the_types_of_what_they_are_compared_with() {
    let fixture = Fixture::new(Limits::default()).await;
    let ann = fixture.login("ann").await;
    let sql = Sql::Text("SELECT count(*) FROM numbers WHERE id < $1 AND word = $2");
    let planned = fixture.engine.plan(&ann, sql).await.unwrap();
    let types: Vec<_> = planned.parameters.iter().map(|field| field.as_ref().unwrap()).collect();
    assert_eq!(types.len(), 2);
    assert_eq!(types[0].data_type(), &DataType::Int64);
    let values = vec![ScalarValue::from(14_i64), ScalarValue::from("word 3")];
    for _ in 0..2 {
        let values = ParamValues::from(values.clone());
        let query = fixture.engine.run(&ann, planned.clone(), values).await.unwrap();
        let batches: Vec<_> = query.try_collect().await.unwrap();
        assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 2);
    }
    let error = fixture.error(&ann, "SELECT $4000000000").await;
    assert_eq!(error.kind, ErrorKind::Syntax);
    assert!(fixture.rows(&ann, "SELECT id FROM numbers WHERE id = $1").await.is_err());
}

#[tokio::test]
async fn settings_hold_for_their_session_only() {
    let fixture = Fixture::new(Limits::default()).await;
    let (one, two) = (fixture.login("root").await, fixture.login("root").await);
    assert!(fixture.rows(&one, "SET coscan.weight = 3").await.unwrap().is_empty());
    let shown = fixture.rows(&one, "SHOW coscan.weight").await.unwrap();
    assert_eq!(shown[0].column(0).as_string::<i32>().value(0), "3");
    let shown = fixture.rows(&two, "SHOW coscan.weight").await.unwrap();
    assert_eq!(shown[0].column(0).as_string::<i32>().value(0), "1");
    fixture.rows(&one, "SET TIME ZONE 'Europe/Amsterdam'").await.unwrap();
    fixture.rows(&one, "SET statement_timeout TO '1min'").await.unwrap();
    fixture.rows(&one, "RESET ALL").await.unwrap();
    let all = fixture.rows(&one, "SHOW ALL").await.unwrap();
    assert!(all[0].num_rows() > 10);
}

#[tokio::test]
async fn a_query_is_cancelled_in_sql_while_it_streams_and_all_slots_are_taken() {
    let limits = Limits { queries_running: 1, queries_waiting: 1, ..Limits::default() };
    let fixture = Fixture::new(limits).await;
    let (ann, bob) = (fixture.login("ann").await, fixture.login("bob").await);
    let mut query = fixture.start(&ann, LONG).await.unwrap();
    query.next().await.unwrap().unwrap();
    let id = query.id.unwrap();
    let cancel = format!("SELECT coscan_cancel({id})");
    let cancelled = fixture.rows(&bob, &cancel).await.unwrap();
    assert!(!cancelled[0].column(0).as_boolean().value(0), "it is not Bob's");
    let running =
        format!("SELECT query_id FROM system.queries WHERE state = 'running' AND sql = '{LONG}'");
    assert_eq!(fixture.number(&ann, &running).await, i64::try_from(id.0).unwrap());
    let cancelled = fixture.rows(&ann, &cancel).await.unwrap();
    assert!(cancelled[0].column(0).as_boolean().value(0));
    let error = loop {
        match query.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
}

#[tokio::test]
async fn a_statement_ends_at_its_timeout_and_a_dropped_query_gives_back_its_memory() {
    let limits = Limits { queries_running: 1, ..Limits::default() };
    let fixture = Fixture::new(limits).await;
    let ann = fixture.login("ann").await;
    ann.set("statement_timeout", Some("50")).unwrap();
    assert_eq!(fixture.error(&ann, LONG).await.kind, ErrorKind::TimedOut);
    ann.set("statement_timeout", None).unwrap();
    let mut query = fixture.start(&ann, LONG).await.unwrap();
    query.next().await.unwrap().unwrap();
    drop(query);
    fixture.engine.queries().drained().await;
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
}

#[tokio::test]
async fn a_query_that_needs_more_memory_than_it_may_have_says_so() {
    let fixture = Fixture::new(Limits::default()).await;
    let ann = fixture.login("ann").await;
    ann.set("coscan.memory_limit", Some("100kB")).unwrap();
    let sql = "SELECT word || id, count(*) FROM numbers GROUP BY 1";
    let error =
        fixture.error(&ann, &format!("SELECT count(DISTINCT a) FROM ({sql}) AS t(a, b)")).await;
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
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

#[tokio::test]
async fn no_more_queries_start_once_the_server_stops() {
    let fixture = Fixture::new(Limits::default()).await;
    let ann = fixture.login("ann").await;
    let mut query = fixture.start(&ann, LONG).await.unwrap();
    query.next().await.unwrap().unwrap();
    fixture.engine.queries().close();
    assert_eq!(fixture.error(&ann, "SELECT count(*) FROM numbers").await.kind, ErrorKind::Stopping);
    fixture.engine.queries().cancel_all();
    let drained = tokio::time::timeout(Duration::from_secs(60), fixture.engine.queries().drained());
    drained.await.unwrap();
}

#[tokio::test]
async fn statements_of_any_depth_do_not_end_the_process() {
    let fixture = Fixture::new(Limits::default()).await;
    let ann = fixture.login("ann").await;
    let sums = format!("SELECT 1{}", "+1".repeat(100_000));
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let selects = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(5_000), ")".repeat(5_000));
    let unions = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(20_000));
    for sql in [sums, nested, selects, unions] {
        let engine = Arc::clone(&fixture.engine);
        // Whether it works or is refused: the process goes on.
        let _ = engine.plan(&ann, Sql::Text(&sql)).await;
    }
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
}

#[test]
fn the_deepest_statements_that_are_accepted_run() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .thread_stack_size(coscan_server::STACK_BYTES)
        .build();
    runtime.unwrap().block_on(run_deepest());
}

/// Each reads the one before.
fn queries(count: usize) -> String {
    let with: Vec<_> = (0..count).map(|n| format!("q{} AS (SELECT id FROM q{n})", n + 1)).collect();
    let with = with.join(", ");
    format!("WITH q0 AS (SELECT id FROM numbers), {with} SELECT count(*) FROM q{count}")
}

async fn run_deepest() {
    let fixture = Fixture::new(Limits::default()).await;
    let ann = Arc::new(fixture.login("ann").await);
    for sql in [
        format!("SELECT sum(id{}) FROM numbers", "+1".repeat(900)),
        format!("SELECT count(*) FROM numbers WHERE id = 0{}", " OR id = 1".repeat(480)),
        queries(240),
        format!("SELECT count(*) FROM numbers WHERE {} id = 1", "NOT ".repeat(20)),
        format!(
            "SELECT count(*) FROM (SELECT id FROM numbers{})",
            " UNION ALL SELECT id FROM numbers".repeat(190)
        ),
    ] {
        let (engine, ann) = (Arc::clone(&fixture.engine), Arc::clone(&ann));
        let run = async move {
            let planned = engine.plan(&ann, Sql::Text(&sql)).await?;
            let query = engine.run(&ann, planned, ParamValues::List(Vec::new())).await?;
            query.try_collect::<Vec<_>>().await
        };
        // On a thread of the runtime, as in a server.
        tokio::spawn(run).await.unwrap().unwrap();
    }
}
