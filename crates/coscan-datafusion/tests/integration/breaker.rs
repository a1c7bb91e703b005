//! Tables at addresses in brackets, and tables whose store no longer lists them.

use std::sync::Arc;
use std::time::Duration;

use coscan_datafusion::{CoscanOptions, enable_url_table};
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::Stores;
use coscan_testing::Faults;
use coscan_testing::s3::S3Server;
use futures::future::join_all;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;

use crate::support::{CHUNK_ROWS, TABLE_OPTIONS, file_of, manager, numbers, plain, run, slt};

fn file() -> Vec<u8> {
    file_of(&numbers(0..300), CHUNK_ROWS as usize)
}

/// The brackets of an IPv6 address are not a pattern.
#[tokio::test]
async fn a_table_is_at_an_address_in_brackets() {
    let server = S3Server::start_at("[::1]:0").await;
    server.put("1.parquet", file());
    let manager = manager(PolicyKind::Relevance);
    let context = enable_url_table(plain());
    CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).install(&context).unwrap();
    let url = server.http("1.parquet");
    assert!(url.contains("[::1]"), "{url}");
    run(&context, &format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{url}'")).await;
    assert_eq!(run(&context, "SELECT sum(id + 0) FROM t").await, ["44850"]);
    assert_eq!(run(&context, &format!("SELECT sum(id + 0) FROM '{url}'")).await, ["44850"]);
    let missing = format!("SELECT * FROM '{}'", url.replace("1.parquet", "2.parquet"));
    let error = slt::run(&context, &missing).await.unwrap_err().to_string();
    assert!(!error.contains("pattern"), "{error}");
}

/// Queries that find the list of files outdated do not wait one after the other for a store that is down.
#[tokio::test]
async fn queries_at_the_same_time_try_once_to_list_files_again() {
    let (files, faults) = (InMemory::new(), Faults::default());
    files.put(&"t/1.parquet".into(), file().into()).await.unwrap();
    let stores = Stores::new();
    stores.register(&"mem://b/".parse().unwrap(), faults.around(Arc::new(files)));
    let manager = manager(PolicyKind::Relevance);
    let context = plain();
    let coscan = CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).with_stores(stores);
    coscan.install(&context).unwrap();
    run(&context, "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'mem://b/t/'").await;
    run(&context, "SET coscan.refresh_interval = '0s'").await;
    faults.fail_listings(Duration::from_secs(1));
    let queries = (0..8).map(|_| run(&context, "SELECT sum(id + 0) FROM t"));
    for answer in join_all(queries).await {
        assert_eq!(answer, ["44850"]);
    }
    let asked = faults.failed_listings();
    run(&context, "SELECT sum(id + 0) FROM t").await;
    // Queries that asked when the first had begun to list files may wait for the second.
    let alone = faults.failed_listings() - asked;
    assert!(asked <= 2 * alone, "{asked} times, and {alone} for one query");
}
