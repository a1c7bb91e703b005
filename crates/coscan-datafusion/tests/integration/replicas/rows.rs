//! A query has the same rows whichever copy it reads.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::kernels::cmp::eq;
use arrow::compute::{cast, filter_record_batch, is_not_null};
use arrow::datatypes::DataType;

use crate::replicas::fixture::{Fixture, ROWS, rows, sorted_by};
use crate::support::{Seeded, assert_all_frees, run, write};

/// A random condition on one or two columns.
fn condition(random: &mut Seeded) -> String {
    let column = |random: &mut Seeded| ["id", "day", "key"][random.below(3) as usize];
    let compare = |random: &mut Seeded| {
        let (column, first) = (column(random), random.below(ROWS as u64));
        let width = [1, 30, 400, 2000][random.below(4) as usize];
        match random.below(5) {
            0 => format!("{column} = {first}"),
            1 => format!("{column} < {first}"),
            2 => format!("({column} IS NULL OR {column} > {first})"),
            _ => format!("{column} BETWEEN {first} AND {}", first + width),
        }
    };
    let first = compare(random);
    match random.below(3) {
        0 => first,
        1 => format!("{first} AND {}", compare(random)),
        _ => format!("({first} OR {})", compare(random)),
    }
}

/// A random query. Its rows do not depend on their order.
fn query(random: &mut Seeded) -> String {
    let filter = condition(random);
    match random.below(8) {
        0 => format!("SELECT count(*), sum(id), max(text) FROM t WHERE {filter}"),
        1 => format!("SELECT key, count(*), min(day) FROM t WHERE {filter} GROUP BY key"),
        2 => format!("SELECT id, day FROM t WHERE {filter} ORDER BY day, id LIMIT 20"),
        3 => format!("SELECT day, text FROM t WHERE {filter} ORDER BY day"),
        4 => format!("SELECT text, id FROM t WHERE {filter} ORDER BY id DESC"),
        5 => {
            let other = condition(random);
            format!(
                "SELECT a.id, b.day, b.text FROM (SELECT * FROM t WHERE {filter}) a \
                 JOIN (SELECT * FROM t WHERE {other}) b ON a.id = b.id"
            )
        }
        6 => format!(
            "SELECT id, sum(key) OVER (ORDER BY day ROWS 3 PRECEDING) FROM t WHERE {filter}"
        ),
        _ => format!("SELECT day, key, text, id FROM t WHERE {filter}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_queries_have_the_rows_of_plain_datafusion() {
    for direct_bytes_max in [0, 1 << 20] {
        let fixture = Fixture::with(|coscan| coscan.with_direct_bytes_max(direct_bytes_max)).await;
        let plain = fixture.plain().await;
        let (mut random, mut of_replica) = (Seeded::new(direct_bytes_max), 0);
        for number in 0..120 {
            let sql = query(&mut random);
            let pushes_down = number % 3 == 0;
            for partitions in [1, 4] {
                for setting in [
                    format!("datafusion.execution.target_partitions = {partitions}"),
                    format!("datafusion.execution.parquet.pushdown_filters = {pushes_down}"),
                ] {
                    run(&fixture.context, &format!("SET {setting}")).await;
                }
                let (mut expected, mut found) =
                    (run(&plain, &sql).await, run(&fixture.context, &sql).await);
                let chosen = fixture.chosen(&sql).await;
                of_replica += usize::from(chosen.iter().any(|copy| copy == "by_day"));
                if !sql.contains("ORDER BY") || sql.contains("OVER") {
                    expected.sort();
                    found.sort();
                }
                assert_eq!(found, expected, "{partitions} partitions, {chosen:?}: {sql}");
            }
        }
        println!("{of_replica} plans read the replica");
        assert!(of_replica > 20, "{of_replica} plans read the replica");
        assert_all_frees(fixture.coscan.manager()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_may_have_other_files_columns_in_another_order_and_partitions() {
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    let data = fixture.data.path();
    let rows = rows();
    let has_key = is_not_null(rows.column_by_name("key").unwrap()).unwrap();
    let rows = filter_record_batch(&rows, &has_key).unwrap();
    write(&data.join("t.parquet"), &rows, 100);
    // Three files of row groups of different sizes.
    std::fs::create_dir(data.join("files")).unwrap();
    let by_day = sorted_by(&rows, "day").project(&[3, 1, 0, 2]).unwrap();
    let last = by_day.num_rows() - 1302;
    for (number, (start, count)) in [(0, 1300), (1300, 2), (1302, last)].into_iter().enumerate() {
        let path = data.join(format!("files/{number}.parquet"));
        write(&path, &by_day.slice(start, count), 60 + 50 * number);
    }
    // A directory for each value of a column that the table stores.
    for key in 0..13 {
        let is_of_key = eq(rows.column_by_name("key").unwrap(), &Int64Array::new_scalar(key));
        let of_key = filter_record_batch(&rows, &is_of_key.unwrap()).unwrap();
        let directory = data.join(format!("keys/key={key}"));
        std::fs::create_dir_all(&directory).unwrap();
        write(&directory.join("0.parquet"), &of_key.project(&[3, 1, 0]).unwrap(), 100);
    }
    fixture.create("t.parquet", "files/, keys/").await;
    let plain = fixture.plain().await;
    for (sql, expected) in [
        ("SELECT * FROM t WHERE day BETWEEN 1250 AND 1400", "files"),
        ("SELECT text, key, id FROM t WHERE key = 5", "keys"),
        ("SELECT key, count(*), sum(day) FROM t WHERE key > 9 GROUP BY key", "keys"),
        ("SELECT * FROM t WHERE id > 3800", "none"),
    ] {
        assert_eq!(fixture.chosen(sql).await, [expected], "{sql}");
        let (mut rows, mut expected) = (run(&fixture.context, sql).await, run(&plain, sql).await);
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nullability_and_forms_of_strings_may_differ() {
    let fixture = Fixture::without_tables(|coscan| coscan.with_direct_bytes_max(0));
    let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let ids: Vec<_> = (0..500).collect();
    let days: Vec<_> = ids.iter().map(|id| id * 77 % 500).collect();
    let texts: Vec<_> = ids.iter().map(|id| format!("text {id}")).collect();
    let table = RecordBatch::try_from_iter_with_nullable(vec![
        ("id", column(ids.clone()), false),
        ("day", column(days), false),
        ("text", Arc::new(StringArray::from(texts)) as ArrayRef, false),
    ])
    .unwrap();
    write(&fixture.data.path().join("t.parquet"), &table, 50);
    let replica = sorted_by(&table, "day");
    let text = replica.column_by_name("text").unwrap();
    let large = cast(text, &DataType::LargeUtf8).unwrap();
    let replica = RecordBatch::try_from_iter_with_nullable(vec![
        ("id", Arc::clone(replica.column(0)), true),
        ("day", Arc::clone(replica.column(1)), true),
        ("text", large, true),
    ])
    .unwrap();
    write(&fixture.data.path().join("by_day.parquet"), &replica, 50);
    fixture.create("t.parquet", "by_day.parquet").await;
    let sql = "SELECT id, day, text FROM t WHERE day BETWEEN 77 AND 90 ORDER BY text";
    assert_eq!(fixture.chosen(sql).await, ["by_day"]);
    assert_eq!(run(&fixture.context, sql).await, run(&fixture.plain().await, sql).await);
}
