//! Copies that change.

use coscan_datafusion::refresh;

use crate::replicas::fixture::{Fixture, ROWS, rows, sorted_by};
use crate::support::{drop_unused, run, slt, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_changed_since_planning_is_an_error() {
    for direct_bytes_max in [0, 1 << 20] {
        let fixture = Fixture::with(|coscan| coscan.with_direct_bytes_max(direct_bytes_max)).await;
        let sql = "SELECT text FROM t WHERE day BETWEEN 100 AND 110";
        let planned = fixture.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        // The size differs, so that the change is noticed whatever the clock.
        let replaced = sorted_by(&rows(), "day").slice(0, 3000);
        write(&fixture.data.path().join("by_day.parquet"), &replaced, 100);
        let ran = datafusion::physical_plan::collect(planned, fixture.context.task_ctx()).await;
        let error = ran.unwrap_err().to_string();
        assert!(error.contains("by_day.parquet") && error.contains("changed"), "{error}");
        // A scan of the table itself still works.
        assert_eq!(run(&fixture.context, "SELECT text FROM t WHERE id = 7").await, ["text 00007"]);
        let error = slt::run(&fixture.context, sql).await.unwrap_err().to_string();
        assert!(error.contains("by_day.parquet") && error.contains("changed"), "{error}");
    }
}

/// The number and the sum of the ids below a bound that have a day below 500.
fn expected(rows: i64) -> [String; 1] {
    let ids: Vec<_> = (0..rows).filter(|id| id * 2777 % ROWS < 500).collect();
    [format!("{} {}", ids.len(), ids.iter().sum::<i64>())]
}

/// Writes the rows up to some id to a file in a directory.
fn write_part(fixture: &Fixture, directory: &str, name: &str, sort: &str, first: i64, end: i64) {
    let directory = fixture.data.path().join(directory);
    std::fs::create_dir_all(&directory).unwrap();
    let rows = rows().slice(first as usize, (end - first) as usize);
    write(&directory.join(name), &sorted_by(&rows, sort), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_refreshed_with_its_table_and_not_read_while_it_has_other_rows() {
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    write_part(&fixture, "t", "1.parquet", "id", 0, 2000);
    write_part(&fixture, "by_day", "1.parquet", "day", 0, 2000);
    fixture.create("t/", "by_day/").await;
    let by_day = "SELECT count(*), sum(id) FROM t WHERE day < 500";
    assert_eq!(fixture.chosen(by_day).await, ["by_day"]);
    assert_eq!(run(&fixture.context, by_day).await, expected(2000));
    // The table has grown, but its replica has not.
    write_part(&fixture, "t", "2.parquet", "id", 2000, ROWS);
    assert_eq!(run(&fixture.context, by_day).await, expected(2000), "the files of its start");
    let error = refresh(&fixture.context, "t").await.unwrap_err().strip_backtrace();
    assert!(error.contains("by_day has 2000 rows") && error.contains("t has 4000"), "{error}");
    assert_eq!(fixture.chosen(by_day).await, [""], "there is no replica");
    assert_eq!(run(&fixture.context, by_day).await, expected(ROWS));
    // The replica has grown, too.
    write_part(&fixture, "by_day", "2.parquet", "day", 2000, ROWS);
    refresh(&fixture.context, "t").await.unwrap();
    assert_eq!(fixture.chosen(by_day).await, ["by_day"]);
    assert_eq!(run(&fixture.context, by_day).await, expected(ROWS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planning_refreshes_replicas_where_it_refreshes_the_table() {
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    write_part(&fixture, "t", "1.parquet", "id", 0, 2000);
    write_part(&fixture, "by_day", "1.parquet", "day", 0, 2000);
    fixture.create("t/", "by_day/").await;
    run(&fixture.context, "SET coscan.refresh_interval = '0s'").await;
    write_part(&fixture, "by_day", "2.parquet", "day", 2000, ROWS);
    let by_day = "SELECT count(*), sum(id) FROM t WHERE day < 500";
    assert_eq!(run(&fixture.context, by_day).await, expected(2000), "the table has not grown");
    write_part(&fixture, "t", "2.parquet", "id", 2000, ROWS);
    assert_eq!(fixture.chosen(by_day).await, ["by_day"]);
    assert_eq!(run(&fixture.context, by_day).await, expected(ROWS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footers_of_replicas_are_read_again_after_they_were_dropped() {
    let fixture = Fixture::new().await;
    let manager = fixture.coscan.manager();
    let by_day = "SELECT count(*), min(text) FROM t WHERE day < 500";
    let expected = run(&fixture.context, by_day).await;
    let with_footers = manager.report().metadata_bytes;
    drop_unused(manager);
    let left = manager.report().metadata_bytes;
    assert!(
        left < with_footers / 2,
        "only what core knows of the tables: {left} of {with_footers}"
    );
    assert_eq!(fixture.chosen(by_day).await, ["by_day"]);
    assert_eq!(run(&fixture.context, by_day).await, expected);
}
