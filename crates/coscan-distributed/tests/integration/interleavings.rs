//! Random queries at the same time, over one, two and three workers, some of which are given up.

use std::collections::BTreeMap;

use datafusion::prelude::SessionContext;
use futures::future::join_all;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{ROW_GROUP_ROWS, sorted_rows, tpch_session};

/// Rows by range of keys and by value, joins whose sides are divided, unions of tables of other sizes, limits behind sorts, and
/// windows.
const QUERIES: [&str; 10] = [
    "SELECT l_orderkey / 1000, count(*), sum(l_extendedprice), min(l_comment) FROM lineitem GROUP BY 1",
    "SELECT l_returnflag, count(*), sum(l_quantity), max(l_shipdate) FROM lineitem GROUP BY 1",
    "SELECT count(*), sum(o_totalprice), sum(l_quantity) FROM orders, lineitem WHERE o_orderkey = l_orderkey",
    "SELECT o_orderpriority, count(*) FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_quantity > 45) GROUP BY 1",
    "SELECT c_mktsegment, count(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_totalprice > 300000 GROUP BY 1",
    "SELECT k, count(*) FROM (SELECT o_custkey % 10 AS k FROM orders UNION ALL SELECT n_nationkey FROM nation UNION ALL SELECT ps_suppkey % 7 FROM partsupp) GROUP BY 1",
    "SELECT l_orderkey, l_linenumber FROM lineitem ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 17",
    "SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY l_suppkey ORDER BY l_orderkey, l_linenumber) AS r FROM lineitem)",
    "SELECT count(DISTINCT l_partkey), count(DISTINCT l_suppkey) FROM lineitem WHERE l_shipdate < DATE '1995-01-01'",
    "SELECT count(*) FROM lineitem WHERE l_extendedprice > (SELECT avg(l_extendedprice) FROM lineitem)",
];

async fn answer(session: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    sorted_rows(&session.sql(sql).await.unwrap().collect().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_interleavings_give_every_row_once() {
    let plain = tpch_session(4, None).await;
    let mut right = BTreeMap::new();
    for sql in QUERIES {
        right.insert(sql, answer(&plain, sql).await);
    }
    let mut clusters = Vec::new();
    for workers in 1..=3 {
        for chunk_rows in [ROW_GROUP_ROWS, 3 * ROW_GROUP_ROWS] {
            let options = TestOptions { chunk_rows, ..TestOptions::small(workers) };
            let cluster = TestCluster::start(&options);
            let sessions =
                [2, 3, 5].map(|partitions| tpch_session(partitions, Some(&cluster.coscan)));
            let sessions = join_all(sessions).await;
            clusters.push((cluster, sessions));
        }
    }
    for seed in 0..200 {
        let mut random = SmallRng::seed_from_u64(seed);
        let (cluster, sessions) = &clusters[random.random_range(0..clusters.len())];
        let queries = (0..random.random_range(1..5)).map(|_| {
            let sql = QUERIES[random.random_range(0..QUERIES.len())];
            let session = &sessions[random.random_range(0..sessions.len())];
            let polls = random.random_ratio(1, 3).then(|| random.random_range(1..200));
            async move {
                let given_up = async {
                    match polls {
                        None => std::future::pending().await,
                        Some(polls) => {
                            for _ in 0..polls {
                                tokio::task::yield_now().await;
                            }
                        }
                    }
                };
                tokio::select! {
                    rows = cluster.query_anywhere(session, sql) => Some((sql, rows)),
                    () = given_up => None,
                }
            }
        });
        for (sql, rows) in join_all(queries).await.into_iter().flatten() {
            assert_eq!(sorted_rows(&rows.unwrap()), right[sql], "seed {seed}: {sql}");
        }
    }
}
