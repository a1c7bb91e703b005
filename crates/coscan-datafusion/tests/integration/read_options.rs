//! Options for reading Parquet, from the session and from `OPTIONS`, work as in plain DataFusion, or are safer.

use std::sync::Arc;

use crate::support::{
    create, explain, manager, numbers_directory, plain, run, shared, slt, write_numbers,
};
use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use coscan_runtime::core::PolicyKind;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Writes three INT96 timestamps like Spark does. The last is beyond the year 2262.
fn write_int96(path: &std::path::Path) {
    let schema = "message spark { OPTIONAL INT96 at; OPTIONAL GROUP s { OPTIONAL INT96 at; } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for definition in [1, 2] {
        let values: Vec<_> = [2_440_589, 2_450_000, 5_000_000]
            .map(|day| {
                let mut value = Int96::new();
                value.set_data(1_000_000_000, 0, day);
                value
            })
            .into();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int96Type>().write_batch(&values, Some(&[definition; 3]), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_asked_for_by_a_session_or_a_table_are_those_of_plain_datafusion() {
    let data = tempfile::tempdir().unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"x"[..], b"y"]));
    let batch = RecordBatch::try_from_iter([("t", texts), ("b", bytes)]).unwrap();
    crate::support::write(&data.path().join("texts.parquet"), &batch, 1);
    write_int96(&data.path().join("times.parquet"));
    for (set, options) in [
        ("", ""),
        ("schema_force_view_types = false", ""),
        ("binary_as_string = true", ""),
        ("coerce_int96 = 'us'", ""),
        ("", "OPTIONS ('schema_force_view_types' 'false', 'format.binary_as_string' 'true')"),
        ("schema_force_view_types = false", "OPTIONS ('schema_force_view_types' 'true')"),
        ("coerce_int96 = 'ms'", "OPTIONS ('coerce_int96' 's')"),
    ] {
        let mut answers = Vec::new();
        for session in [plain(), shared(&manager(PolicyKind::Relevance))] {
            if !set.is_empty() {
                run(&session, &format!("SET datafusion.execution.parquet.{set}")).await;
            }
            for table in ["texts", "times"] {
                let location = data.path().join(format!("{table}.parquet"));
                let location = location.display();
                let create = format!(
                    "CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{location}' {options}"
                );
                run(&session, &create).await;
            }
            let mut rows = Vec::new();
            for sql in [
                "SELECT t, b, arrow_typeof(t), arrow_typeof(b) FROM texts ORDER BY t",
                "SELECT min(t), max(t) FROM texts WHERE b >= 'x'",
                "SELECT at, s, arrow_typeof(at), arrow_typeof(s) FROM times ORDER BY at",
            ] {
                rows.push(run(&session, sql).await);
            }
            answers.push(rows);
        }
        assert_eq!(answers[1], answers[0], "{set} {options}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pruning_can_be_switched_off() {
    let data = numbers_directory(1000);
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", data.path()).await;
    let sql = "SELECT sum(id) FROM t WHERE id < 100";
    assert!(explain(&context, &format!("EXPLAIN {sql}")).await.contains("chunks=1 of 10"));
    run(&context, "SET datafusion.execution.parquet.pruning = false").await;
    assert!(explain(&context, &format!("EXPLAIN {sql}")).await.contains("chunks=10 of 10"));
    assert_eq!(run(&context, sql).await, ["4950"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_file_is_noticed_where_footers_answer() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("numbers.parquet");
    write_numbers(&path, 0..1000);
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", data.path()).await;
    let queries = [
        ("SELECT count(*) FROM t", "1000"),
        ("SELECT min(id), max(id) FROM t", "0 999"),
        ("SELECT (SELECT max(id) FROM t) + 1", "1000"),
    ];
    for (sql, answer) in queries {
        let plan = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(plan.contains("UnchangedFilesExec: files=1"), "{plan}");
        assert!(!plan.contains("SharedScanExec"), "answered from statistics: {plan}");
        assert_eq!(run(&context, sql).await, [answer]);
    }
    write_numbers(&path, 0..500);
    for (sql, _) in queries {
        let error = slt::run(&context, sql).await.unwrap_err().to_string();
        assert!(error.contains("numbers.parquet has changed"), "{sql}: {error}");
    }
    std::fs::remove_file(&path).unwrap();
    let error = slt::run(&context, queries[0].0).await.unwrap_err().to_string();
    assert!(error.contains("does not exist any more"), "{error}");
}
