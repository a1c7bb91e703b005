//! Answers with unusual settings, tables and files are those of the engine, and nothing panics.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{create, explain, manager, plain, run, slt};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use coscan_runtime::{BufferManager, Options};
use coscan_testing::{parquet_file, write_parquet};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::ParquetReadOptions;
use object_store::memory::InMemory;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use parquet::data_type::{Int64Type, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

fn write(path: &Path, batch: &RecordBatch, compression: Compression) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(1 << 20))
        .build();
    write_parquet(path, batch, properties);
}

fn big(rows: i64) -> RecordBatch {
    let mixed = |row: i64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new((0..rows).collect::<Int64Array>())),
        ("v", Arc::new((0..rows).map(mixed).collect::<Int64Array>())),
        ("k", Arc::new((0..rows).map(|row| row % 7).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Filters that the scan evaluates hold where they do not prune, also below a limit that needs few rows.
#[tokio::test]
async fn limit_above_a_pushed_down_filter_without_pruning() {
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("t.parquet"), &big(400_000), Compression::UNCOMPRESSED);
    let manager = manager(PolicyKind::Relevance);
    let shared = plain();
    CoscanOptions::new(&manager).install(&shared).unwrap();
    let engine = plain();
    for context in [&engine, &shared] {
        create(context, "t", data.path()).await;
        run(context, "SET datafusion.execution.parquet.pruning = false").await;
        run(context, "SET datafusion.execution.parquet.pushdown_filters = true").await;
    }
    let sql = "SELECT id, v FROM t WHERE k = 3 LIMIT 5";
    assert!(explain(&shared, &format!("EXPLAIN {sql}")).await.contains("pushed_filters="));
    let rows = run(&shared, sql).await;
    let ids: Vec<i64> =
        rows.iter().map(|row| row.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.iter().all(|id| id % 7 == 3), "{ids:?}");
}

/// Files that store the column of their directory, listed with and without it.
#[tokio::test]
async fn a_column_stored_in_some_files_and_named_by_the_directory_of_others() {
    for first in ["t1", "t2"] {
        let data = tempfile::tempdir().unwrap();
        let directory = data.path().join("p=1");
        std::fs::create_dir(&directory).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", Arc::new((0..1000).collect::<Int64Array>())),
            ("p", Arc::new((0..1000).map(|row| row * 2).collect::<Int64Array>())),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        write(&directory.join("f.parquet"), &batch, Compression::UNCOMPRESSED);
        let location = data.path().display();
        let manager = manager(PolicyKind::Relevance);
        let shared = plain();
        CoscanOptions::new(&manager).with_direct_bytes_max(0).install(&shared).unwrap();
        let engine = plain();
        let of_directory = format!(
            "CREATE EXTERNAL TABLE t1 (a BIGINT, p BIGINT) STORED AS PARQUET PARTITIONED BY (p) LOCATION '{location}/'"
        );
        let stored = format!(
            "CREATE EXTERNAL TABLE t2 (a BIGINT, p BIGINT) STORED AS PARQUET LOCATION '{location}/'"
        );
        for context in [&engine, &shared] {
            match first {
                "t1" => {
                    run(context, &of_directory).await;
                    run(context, &stored).await;
                }
                _ => {
                    run(context, &stored).await;
                    run(context, &of_directory).await;
                }
            }
        }
        for sql in [
            "SELECT sum(a), sum(p) FROM t2 WHERE a >= 5",
            "SELECT sum(a), sum(p) FROM t1 WHERE a >= 5",
            "SELECT sum(p) FROM t2 WHERE a + p > 3",
        ] {
            let expected = run(&engine, sql).await;
            let got = tokio::time::timeout(Duration::from_secs(20), slt::run(&shared, sql)).await;
            let got = got.unwrap_or_else(|_| panic!("{first} first: {sql} hangs"));
            match got {
                Ok(got) => assert_eq!(got, expected, "{first} first: {sql}"),
                Err(error) => panic!("{first} first: {sql}: {error}"),
            }
        }
    }
}

/// A manager whose last handle is dropped is freed, with its stores.
async fn is_freed(engine_table: bool) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let bytes = parquet_file(&[big(10_000)], WriterProperties::default());
    store.put(&StorePath::from("d/t.parquet"), bytes.into()).await.unwrap();
    let weak = Arc::downgrade(&store);
    {
        let manager = BufferManager::new(Options::with_pool_bytes(64 << 20, 256 << 20)).unwrap();
        let context = plain();
        CoscanOptions::new(&manager).with_direct_bytes_max(0).install(&context).unwrap();
        let url = url::Url::parse("memory://").unwrap();
        context.runtime_env().register_object_store(&url, store);
        if engine_table {
            context
                .register_parquet("t", "memory:///d/", ParquetReadOptions::default())
                .await
                .unwrap();
        } else {
            run(&context, "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'memory:///d/'")
                .await;
        }
        let sql = "SELECT count(*) FROM t WHERE v > 0";
        assert!(explain(&context, &format!("EXPLAIN {sql}")).await.contains("SharedScanExec"));
        run(&context, sql).await;
    }
    for _ in 0..300 {
        if weak.strong_count() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the store is still held {} times", weak.strong_count());
}

#[tokio::test]
async fn dropping_all_frees_all_of_coscans_tables() {
    is_freed(false).await;
}

#[tokio::test]
async fn dropping_all_frees_all_of_the_engines_tables() {
    is_freed(true).await;
}

/// NULL in columns that are declared NOT NULL.
#[tokio::test]
async fn nulls_in_columns_declared_not_null() {
    let data = tempfile::tempdir().unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new((0..1000).collect::<Int64Array>())),
        ("b", Arc::new((0..1000).map(|row| (row % 3 > 0).then_some(row)).collect::<Int64Array>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&data.path().join("t.parquet"), &batch, Compression::UNCOMPRESSED);
    let location = data.path().display();
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Int64, false),
    ]);
    let shared = plain();
    CoscanOptions::new(&manager(PolicyKind::Relevance))
        .with_direct_bytes_max(0)
        .install(&shared)
        .unwrap();
    let engine = plain();
    for context in [&engine, &shared] {
        let options = ParquetReadOptions::default().schema(&schema);
        context.register_parquet("l", data.path().to_str().unwrap(), options).await.unwrap();
        let sql = format!(
            "CREATE EXTERNAL TABLE c (a BIGINT NOT NULL, b BIGINT NOT NULL) STORED AS PARQUET LOCATION '{location}/'"
        );
        run(context, &sql).await;
    }
    for sql in [
        "SELECT sum(a), sum(b) FROM l WHERE a > 10",
        "SELECT sum(a), sum(b) FROM c WHERE a > 10",
        "SELECT a, b FROM l LIMIT 10",
    ] {
        assert!(slt::run(&engine, sql).await.is_err(), "{sql}");
        let error = slt::run(&shared, sql).await.unwrap_err().to_string();
        assert!(error.contains("column b is declared NOT NULL"), "{sql}: {error}");
    }
}

/// INT96 timestamps beyond the year 2262, coerced by an option of the table.
#[tokio::test]
async fn a_selective_scan_obeys_the_options_of_its_table() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("t.parquet");
    let message = "message schema { REQUIRED INT64 id; REQUIRED INT96 ts; REQUIRED INT64 v; }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(1000)
        .set_dictionary_enabled(false)
        .build();
    let file = File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let rows = 400_000i64;
    let ids: Vec<i64> = (0..rows).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
    column.close().unwrap();
    // Year 3000 or so: Julian day 2440588 + 376200.
    let stamp = |id: &i64| {
        let mut it = Int96::new();
        it.set_data(0, 0, 2_440_588 + 376_200 + (*id as u32 % 100));
        it
    };
    let stamps: Vec<_> = ids.iter().map(stamp).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&stamps, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    let location = data.path().display();
    let shared = plain();
    CoscanOptions::new(&manager(PolicyKind::Relevance)).install(&shared).unwrap();
    let sql = format!(
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{location}/' OPTIONS ('format.coerce_int96' 'us')"
    );
    let engine = plain();
    for context in [&engine, &shared] {
        run(context, &sql).await;
    }
    for sql in [
        "SELECT id, ts, v FROM t WHERE id = 5",
        "SELECT count(*), min(ts) FROM t WHERE id < 300000",
    ] {
        assert_eq!(
            slt::run(&shared, sql).await.unwrap(),
            slt::run(&engine, sql).await.unwrap(),
            "{sql}"
        );
    }
}
