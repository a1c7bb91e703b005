//! Statements of any depth.

use std::sync::Arc;

use coscan_server::config::Limits;
use coscan_server::queries::ErrorKind;
use coscan_server::sql::Sql;
use datafusion::common::ParamValues;
use futures::TryStreamExt;

use crate::sql::fixture::Fixture;
use crate::support::ROWS;

#[tokio::test]
async fn statements_of_any_depth_do_not_end_the_process() {
    let (fixture, ann) = Fixture::with_ann().await;
    let sums = format!("SELECT 1{}", "+1".repeat(100_000));
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let selects = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(5_000), ")".repeat(5_000));
    let unions = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(20_000));
    for sql in [sums, nested, selects, unions] {
        let service = Arc::clone(&fixture.service);
        // The process must survive, whether the statement is planned or refused.
        let _ = service.plan(&ann, Sql::Text(&sql)).await;
    }
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
}

/// Repeats `open` before `middle`, and `close` after it, `levels` times.
fn nested(levels: usize, open: &str, middle: &str, close: &str) -> String {
    format!("SELECT {}{middle}{}", open.repeat(levels), close.repeat(levels))
}

/// A query whose WITH queries each read the previous one twice.
fn doubled(levels: usize, join: &str) -> String {
    let doubled = |n: usize| {
        let (q, m) = (n, n + 1);
        format!(", c{m} AS (SELECT a.x FROM c{q} a {join} c{q} b)")
    };
    let with: String = (0..levels).map(doubled).collect();
    format!("WITH c0 AS (SELECT 1 AS x){with} SELECT x FROM c{levels} LIMIT 1")
}

#[tokio::test]
async fn what_grows_exponentially_with_the_text_is_answered_or_refused() {
    let (fixture, ann) = Fixture::with_ann().await;
    let runs = [
        nested(40, "abs(", "1", ")"),
        nested(25, "replace(", "'a'", ", 'a', 'b')"),
        nested(12, "coalesce(NULL, ", "1", ")"),
        doubled(6, "CROSS JOIN"),
    ];
    for sql in runs {
        let ran = fixture.rows(&ann, &sql).await;
        assert!(ran.is_ok(), "{sql}: {ran:?}");
    }
    let refused = [
        nested(45, "ceil(", "1 1", ")"),
        nested(45, "interval(", "1 1", ")"),
        nested(45, "extract(", "1 1", ")"),
        nested(45, "CASE WHEN ", "1 1", " THEN 1 END"),
        nested(45, "CAST(", "1 1", " AS int)"),
        nested(45, "EXISTS (SELECT ", "1 1", ")"),
        nested(45, "1 IN (", "1 1", ")"),
        nested(45, "1 IN ((SELECT ", "1 1", "))"),
        nested(45, "ARRAY[", "1 1", "]"),
        nested(45, "f(x => ", "1 1", ")"),
        nested(45, "f(x : ", "1 1", ")"),
        format!(
            "SELECT * FROM {}numbers{}",
            "((SELECT * FROM ".repeat(20),
            ") x JOIN x)".repeat(20)
        ),
        format!("SELECT * FROM {}numbers{}", "(((SELECT 1) JOIN ".repeat(14), ")".repeat(13)),
        doubled(30, "CROSS JOIN"),
        doubled(30, "JOIN numbers ON true UNION ALL SELECT x FROM"),
        doubled(1_000, "CROSS JOIN"),
        format!("SELECT 1 FROM numbers GROUP BY CUBE (id{})", ", id + 1".repeat(40)),
        format!("SELECT 1 FROM numbers GROUP BY {}id", "CUBE (id, word), ".repeat(20)),
    ];
    for sql in refused {
        let planned = fixture.service.plan(&ann, Sql::Text(&sql)).await;
        let kind = planned.err().map(|error| error.kind);
        let is_refused = matches!(kind, Some(ErrorKind::Syntax | ErrorKind::TooComplex));
        assert!(is_refused, "{kind:?}: {sql}");
    }
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

/// A query whose WITH queries each read the previous one.
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
        let (service, ann) = (Arc::clone(&fixture.service), Arc::clone(&ann));
        let run = async move {
            let planned = service.plan(&ann, Sql::Text(&sql)).await?;
            let query = service.run(&ann, planned, ParamValues::List(Vec::new())).await?;
            query.try_collect::<Vec<_>>().await
        };
        // Planning runs on a thread of the runtime, as in a server.
        tokio::spawn(run).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn long_texts_take_memory_of_the_server_while_they_run() {
    let (fixture, ann) = Fixture::with_ann().await;
    let of = |bytes: usize| format!("SELECT '{}'", "x".repeat(bytes));
    let start = async |sql: &str| fixture.start(&ann, sql).await;
    let running = start(&of(1 << 20)).await.unwrap(); // 96 of 256 MB.
    let second = start(&of(1 << 20)).await.unwrap();
    let error = start(&of(1 << 20)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    start("SELECT 1").await.unwrap();
    drop((running, second));
    fixture.service.queries().drained().await;
    start(&of(1 << 20)).await.unwrap();
}
