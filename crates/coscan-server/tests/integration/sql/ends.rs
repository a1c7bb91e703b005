//! Queries that end before they are done.

use std::time::Duration;

use arrow::array::AsArray;
use coscan_server::config::Limits;
use coscan_server::queries::ErrorKind;
use futures::StreamExt;

use crate::sql::fixture::{Fixture, LONG};
use crate::support::ROWS;

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
    fixture.service.queries().drained().await;
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
}

#[tokio::test]
async fn a_query_that_needs_more_memory_than_it_may_have_says_so() {
    let (fixture, ann) = Fixture::with_ann().await;
    ann.set("coscan.memory_limit", Some("100kB")).unwrap();
    let sql = "SELECT word || id, count(*) FROM numbers GROUP BY 1";
    let error =
        fixture.error(&ann, &format!("SELECT count(DISTINCT a) FROM ({sql}) AS t(a, b)")).await;
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    assert_eq!(fixture.number(&ann, "SELECT count(*) FROM numbers").await, ROWS);
}

#[tokio::test]
async fn no_more_queries_start_once_the_server_stops() {
    let (fixture, ann) = Fixture::with_ann().await;
    let mut query = fixture.start(&ann, LONG).await.unwrap();
    query.next().await.unwrap().unwrap();
    fixture.service.queries().close();
    assert_eq!(fixture.error(&ann, "SELECT count(*) FROM numbers").await.kind, ErrorKind::Stopping);
    fixture.service.queries().cancel_all();
    let drained =
        tokio::time::timeout(Duration::from_secs(60), fixture.service.queries().drained());
    drained.await.unwrap();
}
