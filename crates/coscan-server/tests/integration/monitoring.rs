//! Metrics of a server, and the dashboard and alerts in `deploy/` that use them.

use std::collections::BTreeSet;

use crate::support::PASSWORD;
use crate::support::http::{basic, get};
use crate::support::server::{Running, ring, start, start_as};
use tokio_postgres::NoTls;

async fn metrics(running: &Running, user: &str) -> String {
    let login = basic(user, PASSWORD);
    let answer = get(running.http, "/metrics", &[(login.0, &login.1)]).await;
    assert_eq!(answer.status, 200);
    answer.body
}

/// The value of a metric.
fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_logins_and_connections_are_counted() {
    let running = start().await;
    assert_eq!(
        value(&metrics(&running, "ann").await, r#"coscan_queries_ended_total{state="done"}"#),
        0.0
    );
    let client = running.login("ann").await;
    client.simple_query("SELECT id FROM numbers").await.unwrap();
    client.simple_query("SELECT 1 / (id - id) FROM numbers").await.unwrap_err();
    assert!(running.config("ann", "wrong").connect(NoTls).await.is_err());
    running.server.sql_service().queries().drained().await;
    let metrics = metrics(&running, "ann").await;
    for (name, expected) in [
        (r#"coscan_queries_ended_total{state="done"}"#, 1.0),
        (r#"coscan_queries_ended_total{state="failed"}"#, 1.0),
        (r#"coscan_queries_ended_total{state="cancelled"}"#, 0.0),
        (r#"coscan_logins_refused_total{reason="wrong"}"#, 1.0),
        (r#"coscan_logins_refused_total{reason="too_many"}"#, 0.0),
        ("coscan_queries_running", 0.0),
        ("coscan_queries_waiting", 0.0),
        ("coscan_query_run_seconds_count", 2.0),
        ("coscan_query_wait_seconds_count", 2.0),
        ("coscan_query_rows_total", crate::support::ROWS as f64),
        ("coscan_connections_limit", 1100.0),
    ] {
        assert_eq!(value(&metrics, name), expected, "{name} in {metrics}");
    }
    assert!(value(&metrics, "coscan_connections_logged_in") >= 1.0, "psql's: {metrics}");
    assert!(value(&metrics, "coscan_connections") >= 2.0, "psql's and this one: {metrics}");
    assert!(value(&metrics, "coscan_read_bytes_total") > 0.0);
    let sent =
        |protocol| value(&metrics, &format!("coscan_sent_bytes_total{{protocol=\"{protocol}\"}}"));
    // Each row takes a header of 7 bytes, a length of 4, and its digits.
    assert!(sent("postgres") > crate::support::ROWS as f64 * 12.0, "{metrics}");
    assert!(sent("http") > 100.0 && sent("http") < sent("postgres"), "{metrics}");
    assert_eq!(sent("flight"), 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_is_not_admitted_counts_as_refused() {
    let running = start_as(|config, _| {
        config.limits.queries_running = 1;
        config.limits.queries_waiting = 0;
    })
    .await;
    let (first, second) = (running.login("ann").await, running.login("ann").await);
    let none: [i64; 0] = [];
    let long = "SELECT a.id FROM numbers a, numbers b, numbers c";
    let mut rows = Box::pin(first.query_raw(long, none).await.unwrap());
    futures::StreamExt::next(&mut rows).await.unwrap().unwrap();
    second.simple_query("SELECT id FROM numbers").await.unwrap_err();
    let metrics = metrics(&running, "ann").await;
    assert_eq!(value(&metrics, r#"coscan_queries_ended_total{state="refused"}"#), 1.0);
    assert_eq!(value(&metrics, "coscan_queries_running"), 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dashboard_and_the_alerts_ask_for_numbers_that_exist() {
    // The server looks for another one, which does not exist.
    let nobody = "127.0.0.1:1".parse().unwrap();
    let running = start_as(|config, directory| {
        config.ring = Some(ring(directory, "127.0.0.1:0".parse().unwrap(), nobody));
    })
    .await;
    let metrics = metrics(&running, "root").await;
    let end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let names = metrics.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeSet<&str> = names.map(|line| line.split(end).next().unwrap()).collect();
    let (dashboard, alerts) =
        (include_str!("../../deploy/grafana.json"), include_str!("../../deploy/alerts.yml"));
    serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
    for text in [dashboard, alerts] {
        let asked =
            text.match_indices("coscan_").map(|(at, _)| text[at..].split(end).next().unwrap());
        let asked: BTreeSet<&str> = asked.collect();
        assert!(asked.len() > 6, "{asked:?}");
        let missing: Vec<_> = asked.difference(&known).collect();
        assert!(missing.is_empty(), "{missing:?} in {known:?}");
    }
}
