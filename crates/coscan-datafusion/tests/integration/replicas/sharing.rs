//! Pages in the pool, and pages that running scans will read, make a copy cheaper.

use futures::StreamExt;

use crate::replicas::fixture::Fixture;
use crate::support::{create, run};

/// Reads all of a copy, as a table of its own.
async fn read_alone(fixture: &Fixture, copy: &str) {
    create(&fixture.context, "alone", &fixture.data.path().join(copy)).await;
    run(&fixture.context, "SELECT sum(id), max(text) FROM alone").await;
    run(&fixture.context, "DROP TABLE alone").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_copy_that_is_in_the_pool_is_read_if_it_takes_no_more() {
    let fixture = Fixture::new().await;
    let sql = "SELECT sum(id), max(text) FROM t WHERE key = 3";
    let narrow = "SELECT sum(id), max(text) FROM t WHERE key = 3 AND id < 500";
    assert_eq!(fixture.chosen(sql).await, ["none"]);
    read_alone(&fixture, "by_day.parquet").await;
    let [shown] = &fixture.replicas(sql).await[..] else { panic!() };
    assert!(shown.starts_with("by_day (") && shown.contains(" shared; table "), "{shown}");
    // Reading an eighth of the table takes no longer than decoding the whole replica.
    assert_eq!(fixture.chosen(narrow).await, ["none"]);
    fixture.reads.reset();
    run(&fixture.context, "SELECT sum(id), max(text) FROM t").await;
    assert_eq!(fixture.reads.snapshot().bytes, 0, "it is read from the pool");
    fixture.coscan.manager().evict_unneeded();
    assert_eq!(fixture.chosen(sql).await, ["none"]);
    // If the pool has both, the table is read.
    read_alone(&fixture, "by_day.parquet").await;
    read_alone(&fixture, "t.parquet").await;
    assert_eq!(fixture.chosen(sql).await, ["none"]);
    assert_eq!(fixture.chosen("SELECT text FROM t WHERE day < 500").await, ["by_day"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_at_the_same_time_share_one_copy() {
    let fixture = Fixture::new().await;
    let copy = std::fs::metadata(fixture.data.path().join("by_day.parquet")).unwrap().len();
    // The filter rules out a quarter of the replica, and nothing of the table.
    let first = "SELECT * FROM t WHERE day >= 1000";
    assert_eq!(fixture.chosen(first).await, ["by_day"]);
    let mut running = fixture.context.sql(first).await.unwrap().execute_stream().await.unwrap();
    let begun = running.next().await.unwrap().unwrap().num_rows();
    // Most of it is not read yet, but will be for the first query.
    let second = "SELECT count(day), count(id), count(key), count(text) FROM t WHERE id + day > 0";
    let [shown] = &fixture.replicas(second).await[..] else { panic!() };
    assert!(shown.starts_with("by_day (") && shown.contains(" shared; table "), "{shown}");
    let (rows, counts) = tokio::join!(
        async {
            let mut rows = begun;
            while let Some(batch) = running.next().await {
                rows += batch.unwrap().num_rows();
            }
            rows
        },
        run(&fixture.context, second)
    );
    assert_eq!((rows, counts), (3000, vec!["3999 3999 3428 3999".to_owned()]));
    let read = fixture.reads.snapshot().bytes;
    assert!(read <= copy, "{read} bytes read of copies of {copy}");
    drop(running);
    fixture.coscan.manager().evict_unneeded();
    assert_eq!(fixture.chosen(second).await, ["none"], "it is for sharing");
}
