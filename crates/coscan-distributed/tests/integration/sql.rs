//! Every file in `slt/` gives the same rows over three workers.

use datafusion::prelude::{SessionConfig, SessionContext};

use crate::cluster::{TestCluster, TestOptions};
use crate::support::slt::{rows, run, run_file_with};

/// Whether a statement is a query, and not one that makes tables or sets something.
fn is_query(sql: &str) -> bool {
    ["SELECT", "WITH", "VALUES", "("].iter().any(|start| sql.trim_start().starts_with(start))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_suite_has_the_same_rows_over_workers() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../slt");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|ending| ending == "slt"));
    let mut distributed = 0;
    for file in files {
        let options = TestOptions { chunk_rows: 100, ..TestOptions::small(3) };
        let cluster = TestCluster::start(&options);
        let config = SessionConfig::new().with_target_partitions(4).with_batch_size(64);
        let session = SessionContext::new_with_config(config);
        cluster.coscan.clone().install(&session).unwrap();
        let data = tempfile::tempdir().unwrap();
        let counted = std::sync::atomic::AtomicUsize::new(0);
        let run_statement = async |sql: &str| match is_query(sql) {
            true => {
                let is_distributed = cluster.distributes(&session, sql).await;
                counted.fetch_add(is_distributed.into(), std::sync::atomic::Ordering::Relaxed);
                rows(&cluster.query_anywhere(&session, sql).await?)
            }
            false => run(&session, sql).await,
        };
        run_file_with(&file, "workers", run_statement, data.path()).await;
        distributed += counted.into_inner();
    }
    println!("{distributed} queries were distributed");
    assert!(distributed > 50, "{distributed} queries were distributed");
}
