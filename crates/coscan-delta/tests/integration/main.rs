//! Delta tables written by hand, read with equal rows.
#![allow(clippy::unwrap_used)]

mod golden;
mod log;
mod published;

use std::path::Path;
use std::sync::Arc;

use coscan_datafusion::runtime::{BufferManager, Options};
use datafusion::arrow::array::{
    ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use serde_json::{Value, json};

use log::{Table, add, field, mapped_field, metadata, remove};

/// A session with the table `t`.
async fn session(table: &Table) -> SessionContext {
    session_at(table.path()).await.unwrap()
}

/// A session with the table `t` of a directory.
async fn session_at(directory: &Path) -> Result<SessionContext> {
    let config = SessionConfig::new().set_str("datafusion.sql_parser.dialect", "databricks");
    let context = SessionContext::new_with_config(config);
    let manager = BufferManager::new(Options::with_memory_bytes(1 << 30)).unwrap();
    coscan_datafusion::install(&context, &manager).unwrap();
    coscan_delta::install(&context).unwrap();
    let location = directory.display();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'");
    context.sql(&create).await?.collect().await?;
    context.sql("SET coscan.refresh_interval = '0s'").await?;
    Ok(context)
}

/// The rows of a query, sorted, each as text.
pub(crate) async fn rows(context: &SessionContext, sql: &str) -> Vec<String> {
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns: Vec<_> = batch.columns().iter().collect();
        let formats: Vec<_> = columns
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values = formats.iter().map(|format| format.value(row).to_string());
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    rows.sort();
    rows
}

async fn error(context: &SessionContext, sql: &str) -> String {
    match context.sql(sql).await {
        Err(error) => error.to_string(),
        Ok(frame) => frame.collect().await.unwrap_err().to_string(),
    }
}

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

fn id() -> Value {
    json!([field("id", json!("long"))])
}

#[tokio::test]
async fn versions_have_the_rows_of_their_files() {
    let mut table = Table::new(&id(), &[], &json!({}));
    let none = json!({});
    let a = table.write("a.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("a.parquet", a, &none, &[])]);
    let context = session(&table).await;
    assert_eq!(rows(&context, "SELECT id FROM t").await, ["0", "1", "2", "3"]);

    let b = table.write("b.parquet", &[("id", numbers(4..6))]);
    table.commit(&[add("b.parquet", b, &none, &[])]);
    assert_eq!(rows(&context, "SELECT sum(id), count(*) FROM t").await, ["15 6"]);

    table.commit(&[remove("a.parquet", &[])]);
    assert_eq!(rows(&context, "SELECT id FROM t").await, ["4", "5"]);

    // Versions are counted from the one that made the table.
    assert_eq!(rows(&context, "SELECT count(*) FROM t VERSION AS OF 1").await, ["4"]);
    assert_eq!(rows(&context, "SELECT sum(x.id) FROM t VERSION AS OF 2 AS x").await, ["15"]);
    let joined = "SELECT count(*) FROM t VERSION AS OF 2 a JOIN t b ON a.id = b.id";
    assert_eq!(rows(&context, joined).await, ["2"]);
    let then = "SELECT count(*) FROM t TIMESTAMP AS OF '1970-01-01 00:00:01.5'";
    assert_eq!(rows(&context, then).await, ["4"]);
    let now = "SELECT count(*) FROM t TIMESTAMP AS OF now() - INTERVAL '1' HOUR";
    assert_eq!(rows(&context, now).await, ["2"]);
    let unknown = error(&context, "SELECT * FROM t VERSION AS OF 9").await;
    assert!(unknown.contains("cannot be read"), "{unknown}");

    let plan = rows(&context, "EXPLAIN SELECT id FROM t VERSION AS OF 1").await.join("\n");
    assert!(plan.contains("version=1"), "{plan}");
}

#[tokio::test]
async fn a_table_without_files_has_no_rows() {
    let mut table = Table::new(&id(), &[], &json!({}));
    let context = session(&table).await;
    assert!(rows(&context, "SELECT id FROM t").await.is_empty());
    assert_eq!(rows(&context, "SELECT count(*), max(id) FROM t").await, ["0 NULL"]);
    let bytes = table.write("a.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[])]);
    assert_eq!(rows(&context, "SELECT count(*), max(id) FROM t").await, ["4 3"]);
    table.commit(&[remove("a.parquet", &[])]);
    assert!(rows(&context, "SELECT id FROM t WHERE id > 1 ORDER BY id LIMIT 1").await.is_empty());
}

#[tokio::test]
async fn deleted_rows_are_in_no_answer() {
    let mut table = Table::new(&id(), &[], &json!({"delta.enableDeletionVectors": "true"}));
    let none = json!({});
    let a = table.write("a.parquet", &[("id", numbers(0..100))]);
    let b = table.write("b.parquet", &[("id", numbers(100..104))]);
    table.commit(&[add("a.parquet", a, &none, &[]), add("b.parquet", b, &none, &[])]);
    let context = session(&table).await;
    assert_eq!(rows(&context, "SELECT count(*), sum(id) FROM t").await, ["104 5356"]);

    // The first row, all of a row group, the last row.
    let deleted = [0, 10, 11, 57, 99];
    table.commit(&[remove("a.parquet", &[]), add("a.parquet", a, &none, &deleted)]);
    let left: Vec<u64> = (0..104).filter(|row| !deleted.contains(row)).collect();
    let sum: u64 = left.iter().sum();
    let expected = left.iter().map(ToString::to_string);
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(rows(&context, "SELECT id FROM t").await, expected);
    for (sql, answer) in [
        ("SELECT count(*) FROM t", "99".to_owned()),
        ("SELECT count(*), sum(id) FROM t", format!("99 {sum}")),
        ("SELECT min(id), max(id) FROM t WHERE id < 100", "1 98".to_owned()),
        ("SELECT min(id) FROM t", "1".to_owned()),
        ("SELECT count(*) FROM t WHERE id BETWEEN 9 AND 12", "2".to_owned()),
        ("SELECT count(*) FROM t WHERE id = 57", "0".to_owned()),
        ("SELECT id FROM t ORDER BY id LIMIT 1", "1".to_owned()),
        ("SELECT count(*) FROM (SELECT id FROM t LIMIT 3)", "3".to_owned()),
        ("SELECT count(*) FROM (SELECT id FROM t LIMIT 99)", "99".to_owned()),
        ("SELECT count(*) FROM t a JOIN t b ON a.id = b.id", "99".to_owned()),
    ] {
        assert_eq!(rows(&context, sql).await, [answer], "{sql}");
    }
    let before = "SELECT count(*), sum(id) FROM t VERSION AS OF 1";
    assert_eq!(rows(&context, before).await, ["104 5356"]);
    let plan = rows(&context, "EXPLAIN SELECT id FROM t").await.join("\n");
    assert!(plan.contains("deleted_rows=5"), "{plan}");

    // The versions share what they have read.
    let shared =
        rows(&context, "EXPLAIN ANALYZE SELECT id FROM t VERSION AS OF 1").await.join("\n");
    assert!(shared.contains("bytes_read=0"), "{shared}");
}

#[tokio::test]
async fn a_file_without_rows_that_are_left_gives_none() {
    let mut table = Table::new(&id(), &[], &json!({"delta.enableDeletionVectors": "true"}));
    let bytes = table.write("a.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[0, 1, 2, 3])]);
    let context = session(&table).await;
    assert!(rows(&context, "SELECT id FROM t").await.is_empty());
    assert_eq!(rows(&context, "SELECT count(*), max(id) FROM t").await, ["0 NULL"]);
    assert!(rows(&context, "SELECT id FROM t ORDER BY id LIMIT 1").await.is_empty());
}

#[tokio::test]
async fn rows_that_a_file_does_not_have_cannot_be_deleted() {
    let mut table = Table::new(&id(), &[], &json!({"delta.enableDeletionVectors": "true"}));
    let bytes = table.write("a.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[1])]);
    let context = session(&table).await;
    let again = table.write("b.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("b.parquet", again, &json!({}), &[4])]);
    let refused = error(&context, "SELECT * FROM t VERSION AS OF 2").await;
    assert!(refused.contains("row 4 of") && refused.contains("only 4 rows"), "{refused}");
    // The last good version stays.
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await, ["3"]);
}

#[tokio::test]
async fn partition_values_come_from_the_log() {
    let fields = json!([
        field("day", json!("date")),
        field("id", json!("long")),
        field("city", json!("string")),
    ]);
    let mut table = Table::new(&fields, &["day", "city"], &json!({}));
    let a = table.write("day=2026-01-01/a b.parquet", &[("id", numbers(0..2))]);
    let b = table.write("elsewhere.parquet", &[("id", numbers(2..3))]);
    table.commit(&[
        add("day=2026-01-01/a%20b.parquet", a, &json!({"day": "2026-01-01", "city": "Köln"}), &[]),
        add("elsewhere.parquet", b, &json!({"day": null, "city": ""}), &[]),
    ]);
    let context = session(&table).await;
    let all = rows(&context, "SELECT id, day, city FROM t").await;
    assert_eq!(all, ["0 2026-01-01 Köln", "1 2026-01-01 Köln", "2 NULL NULL"]);
    let filtered = "SELECT id FROM t WHERE day = DATE '2026-01-01' AND city LIKE 'K%'";
    assert_eq!(rows(&context, filtered).await, ["0", "1"]);
    assert_eq!(rows(&context, "SELECT count(*) FROM t WHERE city IS NULL").await, ["1"]);
    let counts = "SELECT count(*), count(city), count(day), max(day) FROM t";
    assert_eq!(rows(&context, counts).await, ["3 2 2 2026-01-01"]);

    // A file without rows has no value of its partition.
    let c = table.write("c.parquet", &[("id", numbers(3..5))]);
    table.commit(&[add("c.parquet", c, &json!({"day": "2027-01-01", "city": "Z"}), &[0, 1])]);
    assert_eq!(rows(&context, counts).await, ["3 2 2 2026-01-01"]);
    assert_eq!(rows(&context, "SELECT max(city) FROM t").await, ["Köln"]);
}

#[tokio::test]
async fn columns_are_found_by_their_names_in_files() {
    let renamed = |id_name: &str| {
        let nested = json!({"type": "struct", "fields": [
            mapped_field("street", json!("string"), "col-s", 4),
        ]});
        json!([
            mapped_field(id_name, json!("long"), "col-i", 1),
            mapped_field("address", nested, "col-a", 2),
        ])
    };
    let configuration = json!({"delta.columnMapping.mode": "name"});
    let mut table = Table::new(&renamed("id"), &[], &configuration);
    let street = Field::new("col-s", DataType::Utf8, true);
    let streets: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let address = StructArray::new(Fields::from(vec![street]), vec![streets], None);
    let columns: [(&str, ArrayRef); 2] = [("col-i", numbers(0..4)), ("col-a", Arc::new(address))];
    let bytes = table.write("a.parquet", &columns);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[])]);
    let context = session(&table).await;
    let query = "SELECT id, address['street'] FROM t WHERE id >= 2";
    assert_eq!(rows(&context, query).await, ["2 c", "3 d"]);
    assert_eq!(rows(&context, "SELECT max(id) FROM t").await, ["3"]);

    table.commit(&[metadata(&renamed("number"), &[], &configuration)]);
    // This statement finds the new version for the next.
    rows(&context, "SELECT count(*) FROM t").await;
    assert_eq!(rows(&context, "SELECT sum(number) FROM t").await, ["6"]);
    assert_eq!(rows(&context, "SELECT sum(id) FROM t VERSION AS OF 1").await, ["6"]);
}

#[tokio::test]
async fn a_new_column_with_the_name_of_an_old_one_does_not_have_its_values() {
    let configuration = json!({"delta.columnMapping.mode": "name"});
    let nested = |name: &str, physical: &str, id| json!({"type": "struct", "fields": [mapped_field(name, json!("long"), physical, id)]});
    let before = json!([
        mapped_field("a", json!("long"), "a", 1),
        mapped_field("s", nested("x", "x", 3), "s", 2),
    ]);
    let mut table = Table::new(&before, &[], &configuration);
    let x: ArrayRef = numbers(10..14);
    let fields = Fields::from(vec![Field::new("x", DataType::Int64, true)]);
    let s: ArrayRef = Arc::new(StructArray::new(fields, vec![x], None));
    let bytes = table.write("a.parquet", &[("a", numbers(0..4)), ("s", s)]);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[])]);
    // Column a is renamed, field x dropped; then both names are used again.
    let after = json!([
        mapped_field("b", json!("long"), "a", 1),
        mapped_field("s", nested("x", "col-x", 5), "s", 2),
        mapped_field("a", json!("long"), "col-a", 4),
    ]);
    table.commit(&[metadata(&after, &[], &configuration)]);
    let context = session(&table).await;
    let new = "SELECT count(a), max(a), max(b), count(s['x']) FROM t";
    assert_eq!(rows(&context, "SELECT max(a), max(b), count(a) FROM t").await, ["NULL 3 0"]);
    for _ in 0..2 {
        assert_eq!(rows(&context, new).await, ["0 NULL 3 0"]);
        let old = "SELECT count(a), max(s['x']) FROM t VERSION AS OF 1";
        assert_eq!(rows(&context, old).await, ["4 13"]);
    }
    assert_eq!(rows(&context, "SELECT s['x'] FROM t LIMIT 1").await, ["NULL"]);
}

#[tokio::test]
async fn deleted_rows_need_not_fit_a_later_declaration() {
    let configuration = json!({"delta.enableDeletionVectors": "true"});
    let mut table = Table::new(&id(), &[], &configuration);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let bytes = table.write("a.parquet", &[("id", ids)]);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[])]);
    let mut field = field("id", json!("long"));
    field["nullable"] = json!(false);
    table.commit(&[
        metadata(&json!([field]), &[], &configuration),
        remove("a.parquet", &[]),
        add("a.parquet", bytes, &json!({}), &[1]),
    ]);
    let context = session(&table).await;
    assert_eq!(rows(&context, "SELECT id FROM t").await, ["1", "3"]);
}

#[tokio::test]
async fn a_table_that_is_made_anew_is_read_anew() {
    let mut table = Table::new(&id(), &[], &json!({}));
    let bytes = table.write("a.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[])]);
    let context = session(&table).await;
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await, ["4"]);
    table.make_anew(&id());
    let bytes = table.write("b.parquet", &[("id", numbers(0..7))]);
    table.commit(&[add("b.parquet", bytes, &json!({}), &[])]);
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await, ["7"]);
}

#[tokio::test]
async fn a_directory_with_a_log_is_known_as_a_table() {
    let table = Table::new(&id(), &[], &json!({}));
    let stores = coscan_storage::stores::Stores::new();
    let location = table.path().display().to_string();
    let is_table = async |location: &str| coscan_delta::is_table(&stores, location).await.unwrap();
    assert!(is_table(&location).await);
    for other in ["/*.parquet", "/a.parquet", "/_delta_log", "/missing"] {
        assert!(!is_table(&format!("{location}{other}")).await, "{other}");
    }
}

#[tokio::test]
async fn columns_are_found_by_their_ids_in_files() {
    let fields = json!([
        mapped_field("id", json!("long"), "col-1", 1),
        mapped_field("amount", json!("integer"), "col-2", 2),
    ]);
    let mut table = Table::new(&fields, &[], &json!({"delta.columnMapping.mode": "id"}));
    let with_id = |name: &str, data_type, id: &str| {
        let metadata = [("PARQUET:field_id".to_owned(), id.to_owned())].into_iter().collect();
        Field::new(name, data_type, true).with_metadata(metadata)
    };
    // The names in the file are those of the other column.
    let schema = Schema::new(vec![
        with_id("col-1", DataType::Int32, "2"),
        with_id("col-2", DataType::Int64, "1"),
    ]);
    let amounts: ArrayRef = Arc::new(Int32Array::from(vec![10, 20]));
    let batch = RecordBatch::try_new(Arc::new(schema), vec![amounts, numbers(1..3)]).unwrap();
    let bytes = table.write_batch("a.parquet", &batch);
    table.commit(&[add("a.parquet", bytes, &json!({}), &[])]);
    let context = session(&table).await;
    assert_eq!(rows(&context, "SELECT id, amount FROM t").await, ["1 10", "2 20"]);
    assert_eq!(rows(&context, "SELECT amount FROM t WHERE id = 2").await, ["20"]);
}

#[tokio::test]
async fn columns_may_be_added_and_types_are_those_of_the_log() {
    let mut table = Table::new(&id(), &[], &json!({}));
    let a = table.write("a.parquet", &[("id", numbers(0..2))]);
    table.commit(&[add("a.parquet", a, &json!({}), &[])]);
    let context = session(&table).await;
    assert_eq!(rows(&context, "SELECT * FROM t").await, ["0", "1"]);
    let fields = json!([field("id", json!("long")), field("note", json!("string"))]);
    let notes: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let b = table.write("b.parquet", &[("id", numbers(2..3)), ("note", notes)]);
    table.commit(&[metadata(&fields, &[], &json!({})), add("b.parquet", b, &json!({}), &[])]);
    // A statement sees the columns with which it was planned, and finds the new version for the next.
    assert_eq!(rows(&context, "SELECT * FROM t").await, ["0", "1"]);
    assert_eq!(rows(&context, "SELECT * FROM t").await, ["0 NULL", "1 NULL", "2 x"]);
    assert_eq!(rows(&context, "SELECT * FROM t VERSION AS OF 1").await, ["0", "1"]);
}

#[tokio::test]
async fn a_statement_sees_one_version() {
    let mut table = Table::new(&id(), &[], &json!({}));
    let a = table.write("a.parquet", &[("id", numbers(0..4))]);
    table.commit(&[add("a.parquet", a, &json!({}), &[])]);
    let context = session(&table).await;
    let state = context.state();
    let both = "SELECT (SELECT count(*) FROM t) AS a, (SELECT sum(id) FROM t) AS b, count(*) AS c FROM t x, t y";
    let plan = state.create_logical_plan(both).await.unwrap();
    let b = table.write("b.parquet", &[("id", numbers(4..5))]);
    table.commit(&[add("b.parquet", b, &json!({}), &[])]);
    let batches = context.execute_logical_plan(plan).await.unwrap().collect().await.unwrap();
    let value = |column: usize| batches[0].column(column).as_primitive::<Int64Type>().value(0);
    assert_eq!([value(0), value(1), value(2)], [5, 10, 25]);
}

#[tokio::test]
async fn what_is_no_delta_table_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let context = SessionContext::new();
    assert!(coscan_delta::install(&context).unwrap_err().to_string().contains("need coscan"));
    let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
    coscan_datafusion::install(&context, &manager).unwrap();
    coscan_delta::install(&context).unwrap();
    let location = directory.path().display();
    for (statement, reason) in [
        (
            format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'"),
            "cannot be read",
        ),
        (
            format!("CREATE EXTERNAL TABLE t (a INT) STORED AS DELTA LOCATION '{location}'"),
            "list of columns",
        ),
    ] {
        let refused = error(&context, &statement).await;
        assert!(refused.contains(reason), "{refused}");
    }
}
