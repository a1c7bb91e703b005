//! Tables whose files have different columns are read as plain DataFusion reads them. Some that it refuses are read,
//! too.

use std::path::Path;
use std::sync::Arc;

use crate::support::{create, manager, plain, run, shared, slt};
use arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use coscan_datafusion::enable_url_table;
use coscan_runtime::core::PolicyKind;
use datafusion::prelude::SessionContext;

fn write(directory: &Path, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    crate::support::write(&directory.join(name), &batch, 3);
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn numbers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// Both sessions, with table `t` at a location.
async fn both(location: &Path) -> [SessionContext; 2] {
    let sessions = [plain(), shared(&manager(PolicyKind::Relevance))];
    for session in &sessions {
        create(session, "t", location).await;
    }
    sessions
}

async fn assert_same(sessions: &[SessionContext; 2], queries: &[&str]) {
    for query in queries {
        let [expected, found] = [run(&sessions[0], query).await, run(&sessions[1], query).await];
        assert!(!expected.is_empty(), "{query} gives rows");
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_in_another_order_and_missing_ones_are_as_in_plain_datafusion() {
    let data = tempfile::tempdir().unwrap();
    write(
        data.path(),
        "1.parquet",
        vec![
            ("a", numbers(&[Some(1), Some(2), None, Some(4)])),
            ("b", texts(&["w", "x", "y", "z"])),
        ],
    );
    write(
        data.path(),
        "2.parquet",
        vec![("c", Arc::new(Float64Array::from(vec![0.5, 1.5]))), ("b", texts(&["p", "q"]))],
    );
    write(
        data.path(),
        "3.parquet",
        vec![
            ("b", texts(&["r"])),
            ("a", numbers(&[Some(7)])),
            ("c", Arc::new(Float64Array::from(vec![9.5]))),
        ],
    );
    let sessions = both(data.path()).await;
    let [expected, found] = [0, 1].map(|at| sessions[at].clone());
    let schema = async |session: SessionContext| {
        session.table("t").await.unwrap().schema().as_arrow().fields().clone()
    };
    assert_eq!(schema(found).await, schema(expected).await);
    assert_same(
        &sessions,
        &[
            "SELECT * FROM t ORDER BY b",
            "SELECT count(*), count(a), count(c), min(a), max(a), min(c), max(c) FROM t",
            "SELECT b FROM t WHERE a IS NULL ORDER BY b",
            "SELECT b, c FROM t WHERE a > 3 ORDER BY b",
            "SELECT b FROM t WHERE c IS NOT NULL AND a IS NULL ORDER BY b",
            "SELECT sum(a), sum(c) FROM t WHERE b < 'x'",
            "SELECT c FROM t ORDER BY c NULLS FIRST",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn narrower_numbers_widen_where_plain_datafusion_refuses_the_table() {
    let data = tempfile::tempdir().unwrap();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, Some(-7)]));
    let float: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 0.25, 4.0]));
    write(data.path(), "1.parquet", vec![("n", narrow), ("f", float)]);
    let smallest: ArrayRef = Arc::new(Int16Array::from(vec![3]));
    write(
        data.path(),
        "2.parquet",
        vec![("n", smallest), ("f", Arc::new(Float64Array::from(vec![0.1])))],
    );
    write(data.path(), "3.parquet", vec![("n", numbers(&[Some(1 << 40)]))]);
    let location = data.path().display();
    let refused = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{location}'");
    slt::run(&plain(), &refused).await.unwrap_err();

    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", data.path()).await;
    let rows = run(&context, "SELECT arrow_typeof(n), arrow_typeof(f) FROM t LIMIT 1").await;
    assert!(rows[0].contains("Int64") && rows[0].contains("Float64"), "{rows:?}");
    let sorted = run(&context, "SELECT n FROM t ORDER BY n NULLS FIRST").await;
    assert_eq!(sorted, ["NULL", "-7", "3", "5", "1099511627776"]);
    // The answers come from statistics, and from rows.
    for condition in ["", " WHERE n < 1099511627777 OR n IS NULL"] {
        let query = format!("SELECT min(n), max(n), count(n), count(*) FROM t{condition}");
        assert_eq!(run(&context, &query).await, ["-7 1099511627776 4 5"]);
    }
    assert_eq!(run(&context, "SELECT n FROM t WHERE n > 4 ORDER BY n").await.len(), 2);
    assert_eq!(run(&context, "SELECT n FROM t WHERE f = CAST(0.1 AS DOUBLE)").await, ["3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_without_anything_in_common_are_refused_with_both_files() {
    let data = tempfile::tempdir().unwrap();
    write(data.path(), "1.parquet", vec![("n", numbers(&[Some(5)]))]);
    write(data.path(), "2.parquet", vec![("n", texts(&["five"]))]);
    let context = shared(&manager(PolicyKind::Relevance));
    let location = data.path().display();
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{location}'");
    let error = slt::run(&context, &create).await.unwrap_err().to_string();
    for part in ["1.parquet", "2.parquet", "`n` is Int64 in the first and Utf8View in the second"] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_columns_are_read_as_plain_datafusion_reads_them() {
    let data = tempfile::tempdir().unwrap();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, Some(-7), Some(60)]));
    write(data.path(), "1.parquet", vec![("n", narrow), ("t", texts(&["1", "22", "3", "4"]))]);
    write(data.path(), "2.parquet", vec![("t", texts(&["100"])), ("x", numbers(&[Some(1)]))]);
    let sessions = [plain(), shared(&manager(PolicyKind::Relevance))];
    for session in &sessions {
        let location = data.path().display();
        let create = format!(
            "CREATE EXTERNAL TABLE t (t BIGINT, missing DATE, n BIGINT) STORED AS PARQUET LOCATION '{location}/'"
        );
        run(session, &create).await;
    }
    assert_same(
        &sessions,
        &[
            "SELECT * FROM t ORDER BY t",
            "SELECT t FROM t WHERE n > 0 ORDER BY t",
            "SELECT t FROM t WHERE t > 21 ORDER BY t",
            "SELECT count(*) FROM t WHERE missing IS NULL",
            "SELECT sum(n), max(t) FROM t WHERE t <> 0",
        ],
    )
    .await;
    assert_eq!(run(&sessions[1], "SELECT min(t), max(t), min(n) FROM t").await, ["1 100 -7"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_does_not_fit_the_declared_type_names_file_and_column() {
    let data = tempfile::tempdir().unwrap();
    write(data.path(), "1.parquet", vec![("t", texts(&["1", "two"]))]);
    let context = shared(&manager(PolicyKind::Relevance));
    let location = data.path().display();
    let create =
        format!("CREATE EXTERNAL TABLE t (t INT) STORED AS PARQUET LOCATION '{location}/'");
    run(&context, &create).await;
    let error = slt::run(&context, "SELECT sum(t) FROM t").await.unwrap_err().to_string();
    assert!(error.contains("column `t` of file://") && error.contains("1.parquet"), "{error}");
    assert!(error.contains("cannot be read as Int32") && error.contains("'two'"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_some_files_of_a_named_directory_lack_is_null_there() {
    let data = tempfile::tempdir().unwrap();
    let rows = [("a", numbers(&[Some(1), Some(2)]), false), ("b", numbers(&[Some(3), None]), true)];
    let both = RecordBatch::try_from_iter_with_nullable(rows.clone()).unwrap();
    let [_, nullable] = rows;
    let one = RecordBatch::try_from_iter_with_nullable([nullable]).unwrap();
    crate::support::write(&data.path().join("1.parquet"), &both, 3);
    crate::support::write(&data.path().join("2.parquet"), &one, 3);
    let context = enable_url_table(shared(&manager(PolicyKind::Relevance)));
    let table = format!("'{}/'", data.path().display());
    for (query, rows) in [
        ("SELECT count(*) FROM t WHERE a IS NULL", "2"),
        ("SELECT count(*) FROM t WHERE a IS NOT NULL", "2"),
        ("SELECT count(a) FROM t", "2"),
    ] {
        assert_eq!(
            run(&context, &query.replace("FROM t", &format!("FROM {table}"))).await,
            [rows],
            "{query}"
        );
    }
}
