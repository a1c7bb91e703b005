//! Clients that harm nobody else: those that do not read, and those whose statements fail in odd ways.

use std::future::ready;
use std::time::Duration;

use coscan_distributed::{CoordinatorOptions, WorkerLost, WorkersBusy};
use futures::TryStreamExt;
use tokio::time::timeout;

use super::cluster::FaultyCluster;
use super::{HANGS, QUERY, right_rows};
use crate::data::sorted_rows;

/// A query of more rows than any buffer has room for.
fn many_rows() -> String {
    ["SELECT * FROM lineitem"; 6].join(" UNION ALL ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn results_that_nobody_reads_hold_up_no_other_query() {
    let right = right_rows().await;
    let cluster = FaultyCluster::start().await;
    let mut unread = Vec::new();
    for _ in 0..6 {
        unread.push(cluster.start_query(&cluster.coordinator, &many_rows()).await.unwrap());
    }
    let rows = timeout(HANGS, cluster.query(QUERY)).await.expect("it waits for unread rows");
    assert_eq!(sorted_rows(&rows.unwrap()), right);
    drop(unread);
    timeout(HANGS, cluster.hold_nothing()).await.expect("nothing is held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn long_errors_end_one_query() {
    let cluster = FaultyCluster::start().await;
    for times in [1, 1500, 20_000] {
        let other = cluster.start_query(&cluster.coordinator, &many_rows()).await.unwrap();
        let sql = format!(
            "SELECT CAST(repeat(l_comment, {times}) AS BIGINT) FROM lineitem WHERE l_orderkey % 997 = 1"
        );
        let error = timeout(HANGS, cluster.query(&sql)).await.unwrap().unwrap_err();
        assert!(error.to_string().contains("Cannot cast string"), "{error}");
        assert!(error.to_string().len() < 10_000, "{} bytes", error.to_string().len());
        other.try_for_each(|_| ready(Ok(()))).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_text_of_a_statement_is_no_lost_worker() {
    let cluster = FaultyCluster::start().await;
    let sql =
        "SELECT to_timestamp(l_comment, 'a connection between workers was lost') FROM lineitem";
    let error = cluster.query(sql).await.unwrap_err();
    assert!(!WorkerLost::is(&error), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_unread_result_keeps_its_place_and_others_wait_for_it_a_while() {
    let busy_timeout = Duration::from_millis(300);
    let options =
        CoordinatorOptions { queries_max: 1, busy_timeout, ..CoordinatorOptions::default() };
    let cluster = FaultyCluster::start_with(options).await;
    let unread = cluster.start_query(&cluster.coordinator, &many_rows()).await.unwrap();
    let refused = timeout(HANGS, cluster.query(QUERY)).await.expect("it waits for ever");
    assert!(WorkersBusy::is(&refused.unwrap_err()));
    drop(unread);
    timeout(HANGS, cluster.hold_nothing()).await.expect("nothing is held");
    assert_eq!(sorted_rows(&cluster.query(QUERY).await.unwrap()), right_rows().await);
}
