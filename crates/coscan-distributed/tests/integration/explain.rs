//! EXPLAIN of statements that workers execute.

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{sorted_rows, tpch_session};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stages_are_explained_in_one_format() {
    let cluster = TestCluster::start(&TestOptions::small(2));
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    let query = "SELECT l_returnflag, count(*) FROM lineitem GROUP BY 1";
    let explained = cluster.query(&session, &format!("EXPLAIN {query}")).await.unwrap();
    assert!(sorted_rows(&explained)[0][0].contains("chunk_by_chunk"));
    for format in ["tree", "pgjson", "graphviz"] {
        let sql = format!("EXPLAIN FORMAT {format} {query}");
        let error = cluster.query(&session, &sql).await.unwrap_err().to_string();
        assert!(error.contains(&format!("in the format {format}")), "{error}");
    }
}
