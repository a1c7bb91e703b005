//! Workers that have as many queries as they execute.

use std::time::Duration;

use coscan_distributed::{CoordinatorOptions, WorkersBusy};
use futures::future::{join_all, try_join_all};
use tokio::time::timeout;

use super::cluster::FaultyCluster;
use super::{HANGS, QUERY, right_rows};
use crate::data::sorted_rows;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn queries_of_many_coordinators_wait_for_each_other() {
    let right = right_rows().await;
    let options = CoordinatorOptions { queries_max: 1, ..CoordinatorOptions::default() };
    let cluster = FaultyCluster::start_with(options).await;
    let coordinators = join_all((0..4).map(|_| cluster.another_coordinator())).await;
    let two_of_each = coordinators.iter().chain(&coordinators);
    let queries = try_join_all(two_of_each.map(|of| cluster.query_of(of, QUERY)));
    let answers = timeout(HANGS, queries).await.expect("queries keep each other from ending");
    for rows in answers.unwrap() {
        assert_eq!(sorted_rows(&rows), right);
    }
    timeout(HANGS, cluster.hold_nothing()).await.expect("nothing is held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_query_does_not_wait_for_ever() {
    let busy_timeout = Duration::from_millis(300);
    let options =
        CoordinatorOptions { queries_max: 1, busy_timeout, ..CoordinatorOptions::default() };
    let cluster = FaultyCluster::start_with(options).await;
    let another = cluster.another_coordinator().await;
    cluster.hold_up_reads(true);
    let waits = async {
        // The first query has the workers, and its reads hang.
        while cluster.held().iter().any(|(tasks, ..)| *tasks == 0) {
            tokio::task::yield_now().await;
        }
        let error = cluster.query_of(&another, QUERY).await.unwrap_err();
        assert!(WorkersBusy::is(&error), "{error}");
        cluster.hold_up_reads(false);
    };
    let (rows, ()) =
        timeout(HANGS, async { tokio::join!(cluster.query(QUERY), waits) }).await.expect("it ends");
    assert_eq!(sorted_rows(&rows.unwrap()), right_rows().await);
}
