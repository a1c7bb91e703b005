//! Copies whose columns or rows differ are refused.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use coscan_datafusion::SharedTableProvider;

use crate::replicas::fixture::{Fixture, ROWS, rows};
use crate::support::{slt, write};

/// Replaces one column of the rows, or adds one.
fn with(name: &str, values: ArrayRef) -> RecordBatch {
    let rows = rows();
    let mut columns: Vec<_> = (rows.schema().fields().iter().zip(rows.columns()))
        .map(|(field, values)| (field.name().clone(), Arc::clone(values)))
        .collect();
    match columns.iter_mut().find(|(column, _)| column == name) {
        Some(column) => column.1 = values,
        None => columns.push((name.to_owned(), values)),
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_with_other_columns_or_rows_is_refused_and_the_error_says_which() {
    let fixture = Fixture::without_tables(|coscan| coscan);
    let narrow: ArrayRef = Arc::new((0..ROWS as i32).collect::<Int32Array>());
    let more: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let path = |name: &str| fixture.data.path().join(name);
    write(&path("t.parquet"), &rows(), 100);
    write(&path("few_columns.parquet"), &rows().project(&[0, 1, 3]).unwrap(), 100);
    write(&path("types.parquet"), &with("day", narrow), 100);
    write(&path("columns.parquet"), &with("week", more), 100);
    write(&path("few_rows.parquet"), &rows().slice(0, 3999), 100);
    for (replica, parts) in [
        ("few_columns.parquet", &["replica few_columns", "table t", "column key"][..]),
        ("types.parquet", &["column day", "Int32 in replica types", "Int64 in table t"]),
        ("columns.parquet", &["replica columns", "column week"]),
        ("few_rows.parquet", &["replica few_rows has 3999 rows", "table t has 4000"]),
        ("nowhere.parquet", &["nowhere.parquet"]),
        ("t.parquet, few_rows.parquet", &["replica few_rows has 3999 rows"]),
    ] {
        let error = fixture.refusal("t.parquet", replica).await;
        for part in parts {
            assert!(error.contains(part), "{replica}: {error}");
        }
        assert!(fixture.context.table_provider("t").await.is_err(), "no table is made");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declared_column_is_not_null_because_a_replica_lacks_it() {
    let fixture = Fixture::without_tables(|coscan| coscan);
    let path = |name: &str| fixture.data.path().join(name);
    write(&path("t.parquet"), &rows(), 100);
    write(&path("few_columns.parquet"), &rows().project(&[0, 1, 2]).unwrap(), 100);
    write(&path("all.parquet"), &rows(), 50);
    let statement = |replica: &str| {
        let statement = fixture.statement("t.parquet", replica);
        statement.replace("TABLE t ", "TABLE t (id BIGINT, text VARCHAR, missing BIGINT) ")
    };
    let refused = slt::run(&fixture.context, &statement("few_columns.parquet")).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("replica few_columns") && error.contains("column text"), "{error}");
    slt::run(&fixture.context, &statement("all.parquet")).await.unwrap();
    let rows = slt::run(&fixture.context, "SELECT * FROM t WHERE id = 8").await.unwrap();
    assert_eq!(rows, ["8 text 00008 NULL"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registered_table_may_have_a_replica_and_be_one() {
    let fixture = Fixture::new().await;
    let open = async |name: &str| {
        let location = fixture.data.path().join(name).display().to_string();
        let opened = SharedTableProvider::open(&fixture.coscan, &[location]).await.unwrap();
        let table = opened.table().await.unwrap();
        SharedTableProvider::new(fixture.coscan.manager(), &table).unwrap()
    };
    let (table, by_day) = (open("t.parquet").await, open("by_day.parquet").await);
    let table = table.with_replica(&by_day).await.unwrap();
    fixture.context.deregister_table("t").unwrap();
    fixture.context.register_table("t", Arc::new(table)).unwrap();
    let sql = "SELECT text FROM t WHERE day BETWEEN 100 AND 900 ORDER BY text";
    assert_eq!(fixture.chosen(sql).await, ["by_day"]);
    assert_eq!(
        slt::run(&fixture.context, sql).await.unwrap(),
        slt::run(&fixture.plain().await, sql).await.unwrap()
    );
}
