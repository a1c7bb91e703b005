//! A user who sends very expensive statements, while other users work. It is a process of its own, since it measures
//! the memory of the process.
#![allow(clippy::unwrap_used)]

mod statements;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use statements::statements;
use support::ROWS;
use support::server::{Running, start_as};
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

/// A test that takes longer hangs.
const HANG: Duration = Duration::from_secs(240);

/// The number of connections of the hostile user.
const CONNECTIONS: usize = 12;

/// The maximum growth of the process in bytes. It is five times the memory of the server, a quarter of a gigabyte,
/// since unoptimised code is large itself.
const GROWTH_MAX: u64 = 1280 << 20;

/// The peak memory of this process in bytes, or 0 where it is not available.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Reads a result and discards it. Returns the number of rows.
async fn rows(client: &Client, sql: &str) -> Result<usize, tokio_postgres::Error> {
    let mut messages = std::pin::pin!(client.simple_query_raw(sql).await?);
    let mut rows = 0;
    while let Some(message) = messages.try_next().await? {
        rows += usize::from(matches!(message, SimpleQueryMessage::Row(_)));
    }
    Ok(rows)
}

/// Sends every statement, starting at a place of the list.
async fn attack(running: Arc<Running>, from: usize) {
    let ann = running.login("ann").await;
    ann.batch_execute("SET statement_timeout = '500ms'").await.unwrap();
    let statements = statements();
    for at in 0..statements.len() {
        let sql = &statements[(from + at) % statements.len()];
        // The connection must survive, whether the statement is answered, refused or takes too
        // long.
        let answered = timeout(HANG, rows(&ann, sql)).await;
        let answered = answered.unwrap_or_else(|_| panic!("no answer: {sql:.200}"));
        assert!(!ann.is_closed(), "{answered:?}: {sql:.200}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_stops_nobody_else() {
    let running = Arc::new(start_as(|_, _| ()).await);
    let (bob, root) = (running.login("bob").await, running.login("root").await);
    let before = peak_bytes();
    let attacks: Vec<_> =
        (0..CONNECTIONS).map(|n| tokio::spawn(attack(Arc::clone(&running), n * 3))).collect();
    let mut looks = 0;
    while !attacks.iter().all(tokio::task::JoinHandle::is_finished) || looks == 0 {
        let count = timeout(HANG, bob.query_one("SELECT count(*) FROM numbers", &[])).await;
        assert_eq!(count.unwrap().unwrap().get::<_, i64>(0), ROWS);
        let one = timeout(HANG, root.query_one("SELECT 1::bigint", &[])).await;
        assert_eq!(one.unwrap().unwrap().get::<_, i64>(0), 1);
        let sql = "SELECT count(*) FROM system.queries WHERE state = 'running'";
        timeout(HANG, root.query_one(sql, &[])).await.unwrap().unwrap();
        looks += 1;
    }
    for attack in attacks {
        attack.await.unwrap();
    }
    timeout(HANG, running.server.sql_service().queries().drained()).await.unwrap();
    let growth = peak_bytes().saturating_sub(before);
    assert!(growth <= GROWTH_MAX, "{} MiB", growth >> 20);
}
