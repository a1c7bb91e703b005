//! The copy that a scan reads, and the text of EXPLAIN about it.

use std::sync::Arc;

use coscan_datafusion::SharedTableProvider;
use coscan_storage::table::{FileOptions, PageLayout};

use crate::replicas::fixture::{Fixture, rows, sorted_by};
use crate::support::{TABLE_OPTIONS, explain, run, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_reads_the_copy_of_which_its_filters_leave_least() {
    let fixture = Fixture::new().await;
    for (sql, expected) in [
        ("SELECT * FROM t", "none"),
        ("SELECT sum(id) FROM t WHERE text LIKE '%7'", "none"),
        ("SELECT text FROM t WHERE id < 300", "none"),
        ("SELECT text FROM t WHERE day BETWEEN 100 AND 250", "by_day"),
        ("SELECT text FROM t WHERE day = 100 AND key > 3", "by_day"),
        // Both filters prune, and the narrower one decides.
        ("SELECT text FROM t WHERE day < 2000 AND id < 300", "none"),
        ("SELECT text FROM t WHERE day < 300 AND id < 2000", "by_day"),
        // A few bytes are not worth another copy.
        ("SELECT text FROM t WHERE day >= 200", "none"),
        ("SELECT count(*) FROM t WHERE key IS NULL", "none"),
    ] {
        assert_eq!(fixture.chosen(sql).await, [expected], "{sql}");
    }
    let limit = explain(&fixture.context, "EXPLAIN SELECT * FROM t LIMIT 500").await;
    assert!(limit.contains("table=t") && !limit.contains("replica"), "{limit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_says_what_each_copy_takes() {
    let fixture = Fixture::new().await;
    let bytes = |bytes: u64| format!("{:.1} kB", bytes as f64 / 1e3);
    let provider = fixture.context.table_provider("t").await.unwrap();
    let provider = provider.downcast_ref::<SharedTableProvider>().unwrap();
    let table = provider.table().await.unwrap();
    let chunks: u64 = 100;
    let of = |column: usize, rows: std::ops::Range<u64>| {
        fixture.coscan.manager().scan_bytes(&table, &[column], &[rows]).unshared
    };
    let (one_chunk, all) = (of(1, 0..chunks), of(1, 0..4000));
    assert_eq!(all, 40 * one_chunk, "chunks are alike");
    let [shown] = &fixture.replicas("SELECT day FROM t WHERE day < 300").await[..] else {
        panic!()
    };
    let expected = format!("by_day ({}; table {})", bytes(3 * one_chunk), bytes(all));
    assert_eq!(*shown, expected);
    let [shown] = &fixture.replicas("SELECT id FROM t WHERE id < 300").await[..] else { panic!() };
    let expected = format!("none ({}; by_day {})", bytes(3 * one_chunk), bytes(all));
    assert_eq!(*shown, expected);
    run(&fixture.context, "SET datafusion.explain.format = 'tree'").await;
    let tree = explain(&fixture.context, "EXPLAIN SELECT day FROM t WHERE day < 300").await;
    assert!(tree.contains("replica:") && tree.contains("by_day ("), "{tree}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cheapest_of_several_replicas_is_read() {
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    let path = |name: &str| fixture.data.path().join(name);
    write(&path("t.parquet"), &rows(), 100);
    write(&path("by_day.parquet"), &sorted_by(&rows(), "day"), 100);
    write(&path("by_key.parquet"), &sorted_by(&rows(), "key"), 100);
    fixture.create("t.parquet", "by_key.parquet, by_day.parquet").await;
    for (sql, expected) in [
        ("SELECT text FROM t WHERE day < 150", "by_day"),
        ("SELECT text FROM t WHERE key = 5", "by_key"),
        ("SELECT text FROM t WHERE id = 5", "none"),
    ] {
        assert_eq!(fixture.chosen(sql).await, [expected], "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_left_to_the_engine_reads_the_cheapest_copy_too() {
    let fixture = Fixture::with(|coscan| coscan.with_direct_bytes_max(1 << 20)).await;
    for (sql, expected) in [
        ("SELECT text FROM t WHERE day = 100", "by_day.parquet"),
        ("SELECT text FROM t WHERE id = 100", "t.parquet"),
    ] {
        let text = explain(&fixture.context, &format!("EXPLAIN {sql}")).await;
        assert!(
            text.contains("DataSourceExec") && text.contains(&format!("/{expected}")),
            "{text}"
        );
        assert_eq!(run(&fixture.context, sql).await.len(), 1);
    }
    run(&fixture.context, "SET coscan.sharing = false").await;
    for (sql, expected) in [
        ("SELECT text FROM t WHERE day BETWEEN 100 AND 900", "by_day.parquet"),
        ("SELECT text FROM t WHERE id BETWEEN 100 AND 900", "t.parquet"),
    ] {
        let text = explain(&fixture.context, &format!("EXPLAIN {sql}")).await;
        assert!(
            text.contains("DataSourceExec") && text.contains(&format!("/{expected}")),
            "{text}"
        );
        assert_eq!(run(&fixture.context, sql).await.len(), 801);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_stored_together_cost_all_of_their_row_groups() {
    let data = tempfile::tempdir().unwrap();
    let path = |name: &str| data.path().join(name).display().to_string();
    write(path("t.parquet").as_ref(), &rows(), 100);
    write(path("rows.parquet").as_ref(), &rows(), 100);
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    let row_layout = FileOptions { layout: PageLayout::Row, ..TABLE_OPTIONS };
    let of_rows = fixture.coscan.clone().with_table_options(row_layout);
    let replica = SharedTableProvider::open(&of_rows, &[path("rows.parquet")]).await.unwrap();
    let table = SharedTableProvider::open(&fixture.coscan, &[path("t.parquet")]).await.unwrap();
    let table = table.with_replica(&replica).await.unwrap();
    fixture.context.register_table("t", Arc::new(table)).unwrap();
    let [one] = &fixture.replicas("SELECT id FROM t").await[..] else { panic!() };
    let [all] = &fixture.replicas("SELECT * FROM t").await[..] else { panic!() };
    // A scan of one column reads as much of the replica as a scan of all columns.
    let of_replica = |shown: &str| shown.split_once("rows ").unwrap().1.to_owned();
    assert_eq!(of_replica(one), of_replica(all));
    let ids = run(&fixture.context, "SELECT count(*), sum(id), min(text) FROM t").await;
    assert_eq!(ids, ["4000 7998000 text 00000"]);
}
