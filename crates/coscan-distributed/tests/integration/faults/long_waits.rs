//! Stages that wait for a long time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use coscan_distributed::CoordinatorOptions;

use super::blocks;
use super::cluster::FaultyCluster;
use crate::data::{partition_joins, sorted_rows, tpch_session};

/// Longer than the engine keeps a task that nobody asks for rows.
const LONG: Duration = Duration::from_secs(11 * 60);

/// The rows of `orders` are wanted once all of `customer` are there.
const QUERY: &str = "SELECT c_mktsegment, count(*), sum(o_totalprice) FROM customer, orders \
                     WHERE c_custkey = o_custkey";

async fn check(are_partitioned: bool) {
    let plain = tpch_session(4, None).await;
    let sql = format!("{QUERY} GROUP BY 1");
    let right = sorted_rows(&plain.sql(&sql).await.unwrap().collect().await.unwrap());
    let (blocks, calls) = blocks(1, LONG);
    let cluster = FaultyCluster::start_knowing(CoordinatorOptions::default(), &[blocks]).await;
    if are_partitioned {
        partition_joins(&cluster.session).await;
    }
    let sql = format!("{QUERY} AND blocks(c_custkey) = c_custkey GROUP BY 1");
    let rows = cluster.query(&sql).await;
    assert_eq!(sorted_rows(&rows.unwrap()), right, "partitioned: {are_partitioned}");
    assert!(calls.load(Ordering::Relaxed) > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes eleven minutes; run by .ci/weekly"]
async fn stages_wait_longer_than_the_engine_keeps_idle_tasks() {
    tokio::join!(check(true), check(false));
}
