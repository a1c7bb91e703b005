//! What the engine's form of plans leaves out stays with the server, and has the right rows.

use coscan_distributed::NotDistributed;
use datafusion::error::DataFusionError;

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{sorted_rows, tpch_session};

/// Checks that workers do not execute a query, and that it has the rows of the engine alone.
async fn stays(sql: &str, reason: fn(&NotDistributed) -> bool) {
    let cluster = TestCluster::start(&TestOptions::small(2));
    let (session, plain) =
        (tpch_session(4, Some(&cluster.coscan)).await, tpch_session(4, None).await);
    let error: DataFusionError = cluster.query(&session, sql).await.unwrap_err();
    assert!(NotDistributed::of(&error).is_some_and(reason), "{sql}: {error}");
    let right = plain.sql(sql).await.unwrap().collect().await.unwrap();
    let rows = cluster.query_anywhere(&session, sql).await.unwrap();
    assert_eq!(sorted_rows(&rows), sorted_rows(&right), "{sql}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn window_functions_with_filters_without_nulls_and_in_reverse_order() {
    let is_window = |reason: &NotDistributed| matches!(reason, NotDistributed::Window(_));
    for function in [
        "sum(l_quantity) FILTER (WHERE l_tax > 0.04) OVER (PARTITION BY l_orderkey)",
        "sum(l_quantity) FILTER (WHERE l_tax > 0.04) OVER (PARTITION BY l_orderkey ORDER BY l_linenumber ROWS 2 PRECEDING)",
        "lag(nullif(l_linenumber, 2)) IGNORE NULLS OVER (PARTITION BY l_orderkey ORDER BY l_linenumber)",
        "lag(l_linenumber) OVER (PARTITION BY l_orderkey ORDER BY l_linenumber), \
         lag(l_linenumber) OVER (PARTITION BY l_orderkey ORDER BY l_linenumber DESC)",
    ] {
        stays(&format!("SELECT l_orderkey, l_linenumber, {function} FROM lineitem"), is_window)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn window_functions_without_are_distributed() {
    let cluster = TestCluster::start(&TestOptions::small(2));
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    for function in ["lag(l_linenumber)", "sum(l_quantity)", "row_number()", "first_value(l_tax)"] {
        let sql = format!(
            "SELECT l_orderkey, {function} OVER (PARTITION BY l_orderkey ORDER BY l_linenumber) FROM lineitem"
        );
        assert!(cluster.distributes(&session, &sql).await, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn limits_that_do_not_fit() {
    let is_limit = |reason: &NotDistributed| *reason == NotDistributed::LargeLimit;
    // Any rows may be skipped, so all are equal.
    for limit in ["LIMIT 4294967296", "LIMIT 5000000000", "LIMIT 4294967295 OFFSET 5"] {
        let sql = format!(
            "SELECT l_orderkey * 0, o_custkey * 0 FROM lineitem, orders WHERE l_orderkey = o_orderkey {limit}"
        );
        stays(&sql, is_limit).await;
    }
}
