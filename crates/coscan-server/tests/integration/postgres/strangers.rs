//! Clients that never log in, and users whose access was removed.

use coscan_server::config::Config;
use tokio::net::TcpStream;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::postgres::cancel::LONG;
use crate::postgres::code;
use crate::support::http::get;
use crate::support::server::{start, start_as};
use crate::support::{PASSWORD, in_time};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_connects_and_says_nothing_keeps_nobody_out() {
    let running = start_as(|config, _| config.limits.connections_max = 2).await;
    let ann = running.login("ann").await;
    let cancel = ann.cancel_token();
    let query = tokio::spawn(async move { ann.query(LONG, &[]).await });
    while running.server.sql_service().queries().counts().0 == 0 {
        tokio::task::yield_now().await;
    }
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(running.at).await.unwrap());
        silent.push(TcpStream::connect(running.http).await.unwrap());
    }
    assert_eq!(get(running.http, "/healthz", &[]).await.status, 200);
    let bob = running.login("bob").await;
    bob.query("SELECT count(*) FROM numbers", &[]).await.unwrap();
    // All places for users are taken, but administrators get one.
    let refused = running.config("bob", PASSWORD).connect(NoTls).await.err().unwrap();
    assert_eq!(code(&refused), SqlState::TOO_MANY_CONNECTIONS);
    running.login("root").await.query("SELECT 1", &[]).await.unwrap();
    cancel.cancel_query(NoTls).await.unwrap();
    let cancelled = in_time(query).await.unwrap().unwrap_err();
    assert_eq!(code(&cancelled), SqlState::QUERY_CANCELED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_was_removed_is_sent_away_and_others_stay() {
    let mut kept = Config::default();
    let running = start_as(|config, _| kept = config.clone()).await;
    let (ann, bob) = (running.login("ann").await, running.login("bob").await);
    bob.query("SELECT count(*) FROM secrets", &[]).await.unwrap();
    let path = kept.users_file.as_ref().unwrap();
    let users = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, users.replace("bob", "rob")).unwrap();
    running.server.reload(&kept).await.unwrap();
    let error = bob.query("SELECT count(*) FROM secrets", &[]).await.unwrap_err();
    // The client may notice the end of the connection before it reads the reason.
    assert!(error.is_closed() || code(&error) == SqlState::ADMIN_SHUTDOWN, "{error:?}");
    ann.query("SELECT count(*) FROM numbers", &[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_a_transaction_end_with_it() {
    let running = start().await;
    let ann = running.login("ann").await;
    let shown =
        async || -> String { ann.query_one("SHOW statement_timeout", &[]).await.unwrap().get(0) };
    ann.batch_execute("BEGIN; SET LOCAL statement_timeout = '7s'").await.unwrap();
    assert_eq!(shown().await, "7000ms");
    ann.batch_execute("COMMIT").await.unwrap();
    assert_eq!(shown().await, "0");
    ann.batch_execute("BEGIN; SET statement_timeout = '8s'").await.unwrap();
    assert!(ann.query("SELECT 1/0", &[]).await.is_err());
    ann.batch_execute("COMMIT").await.unwrap(); // Rolls back.
    assert_eq!(shown().await, "0");
    ann.batch_execute("BEGIN; SELECT set_config('statement_timeout', '9s', true)").await.unwrap();
    assert_eq!(shown().await, "9000ms");
    ann.batch_execute("ROLLBACK; SELECT set_config('statement_timeout', '9s', false)")
        .await
        .unwrap();
    assert_eq!(shown().await, "9000ms");
}
