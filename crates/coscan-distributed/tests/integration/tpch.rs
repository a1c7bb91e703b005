//! The queries of TPC-H over several workers.

use coscan_bench::tpch::queries::TEMPLATES;

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{SCALE, sorted_rows, tpch_session};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_workers_give_the_answers_of_plain_datafusion() {
    let cluster = TestCluster::start(&TestOptions::small(3));
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    let plain = tpch_session(4, None).await;
    let mut differences = Vec::new();
    for template in TEMPLATES {
        let sql = template.sql(&template.validation_parameters(SCALE));
        let right = plain.sql(&sql).await.unwrap().collect().await.unwrap();
        match cluster.query(&session, &sql).await {
            Ok(answer) if sorted_rows(&answer) == sorted_rows(&right) => {}
            Ok(answer) => differences.push(format!(
                "Q{}: {:?} instead of {:?}",
                template.number,
                sorted_rows(&answer).first(),
                sorted_rows(&right).first()
            )),
            Err(error) => differences.push(format!("Q{}: {error}", template.number)),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
