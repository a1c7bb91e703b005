//! The memory of workers under load.

use std::time::Duration;

use coscan_bench::tpch::queries::TEMPLATES;
use coscan_runtime::Options;
use futures::future::try_join_all;
use tokio::time::timeout;

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{SCALE, partition_joins, row_group_bytes_max, set, sorted_rows, tpch_session};

/// What takes longer does not end.
const HANGS: Duration = Duration::from_secs(600);

const MEMORY_BYTES: u64 = 24 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_streams_keep_to_the_budget_of_each_worker() {
    let manager = Options::with_memory_bytes(MEMORY_BYTES);
    let cluster = TestCluster::start(&TestOptions { manager, ..TestOptions::small(3) });
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    set(&session, "datafusion.execution.sort_spill_reservation_bytes = 262144").await;
    let stream = |number: usize| {
        let (cluster, session) = (&cluster, &session);
        async move {
            for step in 0..TEMPLATES.len() {
                let template = &TEMPLATES[(number * 5 + step) % TEMPLATES.len()];
                let sql = template.sql(&template.validation_parameters(SCALE));
                cluster.query_anywhere(session, &sql).await?;
            }
            Ok::<_, datafusion::error::DataFusionError>(())
        }
    };
    let streams = timeout(HANGS, try_join_all((0..8).map(stream))).await;
    streams.expect("queries wait for each other").unwrap();
    for worker in &cluster.workers {
        let held = worker.manager.report().held_bytes_max;
        println!("{} KB of {} KB held at most", held >> 10, MEMORY_BYTES >> 10);
        assert!(held > MEMORY_BYTES / 2, "{held} bytes are no load");
        assert!(held <= MEMORY_BYTES / 10 * 11, "{held} bytes of {MEMORY_BYTES}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn joins_on_pools_of_two_chunks_end() {
    let options = TestOptions::small(3);
    let roomy = TestCluster::start(&options);
    let session = tpch_session(4, Some(&roomy.coscan)).await;
    let sql = "SELECT o_orderpriority, count(*), sum(l_extendedprice), max(l_comment), max(o_comment) \
               FROM orders, lineitem WHERE o_orderkey = l_orderkey GROUP BY 1";
    let right = sorted_rows(&roomy.query(&session, sql).await.unwrap());
    let manager = Options::with_pool_bytes(2 * row_group_bytes_max(), 64 << 20);
    let cluster = TestCluster::start(&TestOptions { manager, ..options });
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    partition_joins(&session).await;
    let joins = try_join_all((0..8).map(|_| cluster.query(&session, sql)));
    let answers = timeout(HANGS, joins).await.expect("joins keep each other from ending");
    for rows in answers.unwrap() {
        assert_eq!(sorted_rows(&rows), right);
    }
}

/// Executes joins at the same time, of which few find memory beside each other.
async fn joins_end(options: TestOptions) {
    let manager = Options::with_memory_bytes(16 << 20);
    let cluster = TestCluster::start(&TestOptions { manager, ..options });
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    partition_joins(&session).await;
    // The rows of one side are in memory.
    let sql = "SELECT count(*), max(a.l_comment), max(b.l_comment) FROM lineitem a, lineitem b \
               WHERE a.l_orderkey = b.l_orderkey AND a.l_linenumber = b.l_linenumber";
    let right = sorted_rows(&cluster.query(&session, sql).await.unwrap());
    let joins = try_join_all((0..8).map(|_| cluster.query(&session, sql)));
    let answers = timeout(HANGS, joins).await.expect("joins keep each other from ending");
    for rows in answers.unwrap() {
        assert_eq!(sorted_rows(&rows), right);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn queries_that_find_no_memory_beside_each_other_are_executed_alone() {
    joins_end(TestOptions::small(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn queries_that_cannot_be_alone_are_tried_beside_those_that_are_left() {
    joins_end(TestOptions { alone_timeout: Duration::ZERO, ..TestOptions::small(3) }).await;
}
