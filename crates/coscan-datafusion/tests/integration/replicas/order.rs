//! A copy whose order an operator needs saves a sort.

use std::sync::Arc;

use coscan_datafusion::SharedTableProvider;
use datafusion::prelude::col;

use crate::replicas::fixture::{Fixture, rows, sorted_by, write_sorted};
use crate::support::{explain, run};

async fn fixture() -> Fixture {
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    let path = |name: &str| fixture.data.path().join(name);
    write_sorted(&path("t.parquet"), &rows(), 0);
    write_sorted(&path("by_day.parquet"), &sorted_by(&rows(), "day"), 1);
    fixture.create("t.parquet", "by_day.parquet").await;
    fixture
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_in_the_needed_order_is_read_unless_it_takes_much_more() {
    let fixture = fixture().await;
    let plain = fixture.plain().await;
    for (sql, replica, sorts) in [
        ("SELECT id, text FROM t ORDER BY id", "none", false),
        ("SELECT day, text FROM t ORDER BY day", "by_day (saves a sort: ", false),
        ("SELECT day, text FROM t ORDER BY day LIMIT 5", "by_day (saves a sort: ", false),
        ("SELECT day, text FROM t WHERE day < 500 ORDER BY day", "by_day", false),
        ("SELECT id, row_number() OVER (ORDER BY day) FROM t", "by_day (saves a sort: ", false),
        // The table has far fewer chunks of these ids, and the replica far fewer of these days.
        ("SELECT day, text FROM t WHERE id < 500 ORDER BY day", "none", true),
        ("SELECT id, text FROM t WHERE day < 500 ORDER BY id", "by_day", true),
        ("SELECT text FROM t ORDER BY text", "none", true),
    ] {
        // The pool has what the last query has read.
        fixture.coscan.manager().evict_unneeded();
        let text = explain(&fixture.context, &format!("EXPLAIN {sql}")).await;
        let has_sort = text.contains("SortExec");
        assert!(text.contains(&format!("replica={replica}")), "{sql}\n{text}");
        assert_eq!(has_sort, sorts, "{sql}\n{text}");
        assert_eq!(text.contains("saves a sort"), replica.contains("saves"), "{sql}\n{text}");
        let (mut rows, mut expected) = (run(&fixture.context, sql).await, run(&plain, sql).await);
        if sql.contains("OVER") {
            rows.sort();
            expected.sort();
        }
        assert_eq!(rows, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_may_declare_its_order() {
    let fixture = Fixture::new().await;
    let open = async |name: &str| {
        let location = fixture.data.path().join(name).display().to_string();
        SharedTableProvider::open(&fixture.coscan, &[location]).await.unwrap()
    };
    let by_day = open("by_day.parquet").await;
    let by_day = by_day.with_orders(&[vec![col("day").sort(true, false)]]).await.unwrap();
    let table = open("t.parquet").await.with_replica(&by_day).await.unwrap();
    fixture.context.register_table("u", Arc::new(table)).unwrap();
    for (table, sorts) in [("t", true), ("u", false)] {
        let sql = format!("EXPLAIN SELECT day, text FROM {table} ORDER BY day");
        let text = explain(&fixture.context, &sql).await;
        assert_eq!(text.contains("SortExec"), sorts, "{text}");
        assert_eq!(text.contains("replica=by_day (saves a sort: "), !sorts, "{text}");
    }
    let sql = "SELECT day, text FROM u ORDER BY day";
    let expected = run(&fixture.plain().await, &sql.replace(" u ", " t ")).await;
    assert_eq!(run(&fixture.context, sql).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_joins_read_both_copies_in_order() {
    let fixture = fixture().await;
    let plain = fixture.plain().await;
    run(&fixture.context, "SET datafusion.optimizer.prefer_hash_join = false").await;
    let sql = "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.day";
    let text = explain(&fixture.context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("SortMergeJoinExec") && !text.contains("SortExec"), "{text}");
    assert_eq!(fixture.chosen(sql).await, ["none", "by_day"]);
    let (mut rows, mut expected) = (run(&fixture.context, sql).await, run(&plain, sql).await);
    rows.sort();
    expected.sort();
    assert_eq!(rows, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_chunk_by_chunk_does_so_in_the_copy_that_a_scan_reads() {
    let fixture = fixture().await;
    let plain = fixture.plain().await;
    for limit in ["threshold", "threshold_rows"] {
        let setting = format!("datafusion.optimizer.hash_join_single_partition_{limit} = 0");
        run(&fixture.context, &format!("SET {setting}")).await;
    }
    for (sql, operator, expected) in [
        ("SELECT id, count(*) FROM t GROUP BY id", Some("OrderedAggregateExec"), &["none"][..]),
        (
            "SELECT day, count(*) FROM t WHERE day < 900 GROUP BY day",
            Some("OrderedAggregateExec"),
            &["by_day"],
        ),
        ("SELECT id, count(*) FROM t WHERE day < 900 GROUP BY id", None, &["by_day"]),
        (
            "SELECT a.id, b.text FROM t a JOIN t b ON a.id = b.id",
            Some("CooperativeJoinExec"),
            &["none", "none"],
        ),
        // One copy is not clustered by the key of the join.
        (
            "SELECT a.id, b.text FROM t a JOIN t b ON a.id = b.id WHERE a.day < 900",
            None,
            &["by_day", "none"],
        ),
        (
            "SELECT a.id, b.text FROM t a JOIN t b ON a.day = b.day \
             WHERE a.day < 1500 AND b.day < 1500",
            Some("CooperativeJoinExec"),
            &["by_day", "by_day"],
        ),
        // Two copies that are both clustered by their keys.
        (
            "SELECT a.id, b.text FROM t a JOIN t b ON a.day = b.id \
             WHERE a.day BETWEEN 300 AND 2700 AND b.id BETWEEN 300 AND 2700",
            Some("CooperativeJoinExec"),
            &["by_day", "none"],
        ),
    ] {
        let text = explain(&fixture.context, &format!("EXPLAIN {sql}")).await;
        for name in ["OrderedAggregateExec", "CooperativeJoinExec"] {
            assert_eq!(text.contains(name), operator == Some(name), "{sql}\n{text}");
        }
        assert_eq!(fixture.chosen(sql).await, expected, "{sql}");
        let (mut rows, mut expected) = (run(&fixture.context, sql).await, run(&plain, sql).await);
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{sql}");
    }
}
