//! `INSERT INTO` tables of files, and one snapshot for each statement.

use coscan_runtime::core::PolicyKind;

use crate::support::{create, manager, numbers_directory, run, shared, write_numbers};

#[tokio::test]
async fn a_table_of_a_directory_that_is_not_there_yet_takes_rows() {
    let data = tempfile::tempdir().unwrap();
    let context = shared(&manager(PolicyKind::Relevance));
    let location = data.path().join("new");
    let create = format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, text VARCHAR) STORED AS PARQUET LOCATION '{}/'",
        location.display()
    );
    run(&context, &create).await;
    assert!(run(&context, "SELECT * FROM t").await.is_empty());
    run(&context, "INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    run(&context, "INSERT INTO t VALUES (3, NULL)").await;
    assert_eq!(run(&context, "SELECT count(*), sum(id), count(text) FROM t").await, ["3 6 2"]);
    assert!(location.is_dir());
}

#[tokio::test]
async fn the_next_query_sees_rows_inserted_into_a_shared_table() {
    let data = numbers_directory(300);
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", data.path()).await;
    let count = "SELECT count(*), min(id), max(id) FROM t WHERE id < 1000000";
    assert_eq!(run(&context, count).await, ["300 0 299"]);
    let inserted = run(&context, "INSERT INTO t SELECT id + 300, key, value, text FROM t").await;
    assert_eq!(inserted, ["300"]);
    assert_eq!(run(&context, count).await, ["600 0 599"]);
}

#[tokio::test]
async fn a_replaced_file_is_noticed_although_its_pages_are_in_memory() {
    let data = numbers_directory(300);
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", data.path()).await;
    let sum = "SELECT sum(id) FROM t WHERE id >= 0";
    assert_eq!(run(&context, sum).await, ["44850"]);
    let file = std::fs::read_dir(data.path()).unwrap().next().unwrap().unwrap().path();
    write_numbers(&file, 1000..1400);
    // Files are looked at once in a while, not for each query.
    let noticed = async {
        loop {
            match context.sql(sum).await.unwrap().collect().await {
                Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
                Err(error) => break error.to_string(),
            }
        }
    };
    let noticed = tokio::time::timeout(std::time::Duration::from_secs(60), noticed).await.unwrap();
    assert!(noticed.contains("has changed"), "{noticed}");
}
