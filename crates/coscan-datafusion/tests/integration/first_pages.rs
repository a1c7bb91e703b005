//! The first rows of a table of many columns cost little, since only the first pages of each column are read, in one
//! partition.

use std::path::Path;
use std::sync::Arc;

use coscan_datafusion::CoscanOptions;
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::{DirectFileStore, StoreMetrics};
use coscan_testing::parquet_file;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::prelude::SessionContext;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::support::{
    Seeded, counted, create, create_ordered, explain, leaf, metric, partitions, plain, plan, run,
};

/// The number of rows in a batch that is written.
const STEP: usize = 5_000;

/// Writes a row group with column `c0`, the number of the row, and columns `c1`, `c2` and so on: numbers that repeat,
/// numbers that do not, and texts.
fn write_wide(path: &Path, columns: usize, rows: std::ops::Range<i64>, has_index: bool) {
    // Pages of a tenth of the rows, without dictionaries, which would be read as well.
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(STEP)
        .set_dictionary_enabled(false);
    let properties = match has_index {
        true => builder.build(),
        false => builder
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build(),
    };
    let column = |column: usize, rows: std::ops::Range<i64>| -> (String, ArrayRef) {
        let seed = column as i64 + 1;
        let mixed = move |row: i64| row.wrapping_mul(seed).wrapping_mul(0x9E37_79B9) >> 7;
        let values = rows.map(move |row| if column == 0 { row } else { mixed(row) });
        let array: ArrayRef = match column % 3 {
            0 if column == 0 => Arc::new(values.collect::<Int64Array>()),
            0 => Arc::new(values.map(|value| value.rem_euclid(50)).collect::<Int64Array>()),
            1 => Arc::new(values.map(|value| value as f64).collect::<Float64Array>()),
            _ => Arc::new(values.map(|value| Some(format!("{value:x}"))).collect::<StringArray>()),
        };
        (format!("c{column}"), array)
    };
    let batch = |rows: std::ops::Range<i64>| {
        RecordBatch::try_from_iter((0..columns).map(|index| column(index, rows.clone()))).unwrap()
    };
    let starts = rows.clone().step_by(STEP);
    let batches: Vec<_> =
        starts.map(|start| batch(start..rows.end.min(start + STEP as i64))).collect();
    std::fs::write(path, parquet_file(&batches, properties)).unwrap();
}

/// A session in which `wide` is the files of a directory, and the metrics of reads from them.
async fn session(location: &Path) -> (SessionContext, BufferManager, Arc<StoreMetrics>) {
    let (stores, metrics) = counted(DirectFileStore::new());
    let manager = crate::support::manager(PolicyKind::Relevance);
    let context = plain();
    CoscanOptions::new(&manager).with_stores(stores).install(&context).unwrap();
    create(&context, "wide", location).await;
    metrics.reset();
    (context, manager, metrics)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rows_of_many_columns_read_few_bytes() {
    for has_index in [true, false] {
        let data = tempfile::tempdir().unwrap();
        write_wide(&data.path().join("wide.parquet"), 100, 0..50_000, has_index);
        let all_bytes = data.path().join("wide.parquet").metadata().unwrap().len();
        let (context, manager, read) = session(data.path()).await;
        let sql = "SELECT * FROM wide LIMIT 10";
        let plan = plan(&context, sql).await;
        assert_eq!(partitions(&leaf(&plan)), 1);
        let expected = datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx());
        let batches = expected.await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
        let read = read.snapshot();
        assert!(read.bytes * 7 <= all_bytes, "{read:?} of {all_bytes}, {has_index}");
        assert_eq!(metric(&leaf(&plan), "slices_decoded"), 100);
        assert!(metric(&leaf(&plan), "bytes_read") as u64 <= read.bytes);
        let held: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        assert!(held < 100 * 2_000, "{held} bytes for 10 rows");
        drop((batches, plan));
        crate::support::assert_all_frees(&manager).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_are_those_of_the_plain_engine() {
    let data = tempfile::tempdir().unwrap();
    let rows = [0..150_000, 150_000..150_003, 150_003..200_000];
    for (file, rows) in rows.into_iter().enumerate() {
        write_wide(&data.path().join(format!("{file}.parquet")), 6, rows, file % 2 == 0);
    }
    let (context, _manager, _) = session(data.path()).await;
    create_ordered(&context, "sorted", "c0", data.path()).await;
    let reference = plain();
    create(&reference, "wide", data.path()).await;
    // In plain DataFusion a limit takes any rows, so the reference query selects them.
    for (sql, reference_sql, is_short) in [
        ("SELECT * FROM wide LIMIT 10", "SELECT * FROM wide WHERE c0 < 10 ORDER BY c0", true),
        (
            "SELECT * FROM wide LIMIT 10 OFFSET 100",
            "SELECT * FROM wide WHERE c0 BETWEEN 100 AND 109 ORDER BY c0",
            true,
        ),
        (
            "SELECT c5, c1, c5 AS again FROM wide LIMIT 3",
            "SELECT c5, c1, c5 AS again FROM wide WHERE c0 < 3 ORDER BY c0",
            true,
        ),
        (
            "SELECT c3 + 1, c5 FROM wide LIMIT 2000",
            "SELECT c3 + 1, c5 FROM wide WHERE c0 < 2000 ORDER BY c0",
            true,
        ),
        (
            "SELECT c2 FROM (SELECT * FROM wide LIMIT 50) ORDER BY c2",
            "SELECT c2 FROM wide WHERE c0 < 50 ORDER BY c2",
            true,
        ),
        (
            "SELECT count(*), sum(c3), min(c5), max(c2) FROM (SELECT * FROM wide LIMIT 77)",
            "SELECT count(*), sum(c3), min(c5), max(c2) FROM wide WHERE c0 < 77",
            true,
        ),
        (
            "SELECT a.c5, b.c2 FROM (SELECT c5 FROM wide LIMIT 5) a, (SELECT c2 FROM wide LIMIT 4) b ORDER BY 1, 2",
            "SELECT a.c5, b.c2 FROM wide a, wide b WHERE a.c0 < 5 AND b.c0 < 4 ORDER BY 1, 2",
            true,
        ),
        (
            "SELECT * FROM wide ORDER BY c1, c0 LIMIT 10",
            "SELECT * FROM wide ORDER BY c1, c0 LIMIT 10",
            false,
        ),
        (
            "SELECT * FROM sorted ORDER BY c0 LIMIT 10 OFFSET 5",
            "SELECT * FROM wide WHERE c0 BETWEEN 5 AND 14 ORDER BY c0",
            true,
        ),
        ("SELECT count(c1) FROM (SELECT * FROM wide LIMIT 20000)", "SELECT 20000", false),
        ("SELECT count(c1) FROM (SELECT * FROM wide LIMIT 300000)", "SELECT 200000", false),
        ("SELECT count(*) FROM (SELECT c1 FROM wide WHERE c3 = 7 LIMIT 10)", "SELECT 10", false),
        ("SELECT count(*) FROM (SELECT c1 FROM wide LIMIT 0)", "SELECT 0", false),
    ] {
        assert_eq!(run(&context, sql).await, run(&reference, reference_sql).await, "{sql}");
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert_eq!(text.contains("reads=first_pages"), is_short, "{sql}: {text}");
        let tree = explain(&context, &format!("EXPLAIN FORMAT TREE {sql}")).await;
        assert_eq!(tree.contains("first_pages"), is_short, "{sql}: {tree}");
    }
    let mut random = Seeded::new(7);
    for _ in 0..20 {
        let others = (0..5).map(|_| format!("c{}", random.below(6)));
        let columns: Vec<_> = others.enumerate().map(|(at, it)| format!("{it} AS o{at}")).collect();
        let (limit, offset) = (1 + random.below(3000), random.below(3000));
        let (columns, end) = (columns.join(", "), offset + limit);
        let sql = format!("SELECT c2, {columns}, c5 FROM wide LIMIT {limit} OFFSET {offset}");
        let named = format!("WHERE c0 >= {offset} AND c0 < {end} ORDER BY c0");
        let reference_sql = format!("SELECT c2, {columns}, c5 FROM wide {named}");
        assert_eq!(run(&context, &sql).await, run(&reference, &reference_sql).await, "{sql}");
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(text.contains("reads=first_pages"), "{sql}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_are_in_the_pool_are_not_read_again() {
    for has_index in [true, false] {
        let data = tempfile::tempdir().unwrap();
        write_wide(&data.path().join("wide.parquet"), 12, 0..100_000, has_index);
        let (context, _manager, read) = session(data.path()).await;
        let columns: Vec<_> = (0..12).map(|column| format!("max(c{column} || '')")).collect();
        run(&context, &format!("SELECT {} FROM wide", columns.join(", "))).await;
        read.reset();
        let rows = run(&context, "SELECT * FROM wide LIMIT 10").await;
        assert_eq!(rows.len(), 10);
        assert_eq!(read.snapshot().bytes, 0, "all of it is in the pool");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_gets_its_limit_late_gives_the_rows_in_one_partition() {
    let data = tempfile::tempdir().unwrap();
    for file in 0..3 {
        write_wide(&data.path().join(format!("{file}.parquet")), 12, 0..40_000, true);
    }
    let (context, ..) = session(data.path()).await;
    let scan = leaf(&plan(&context, "SELECT * FROM wide").await);
    assert_eq!(partitions(&scan), 3);
    let limited = scan.with_fetch(Some(20)).unwrap();
    assert_eq!(partitions(&limited), 3);
    for _ in 0..2 {
        let mut rows = 0;
        for partition in 0..3 {
            let stream = limited.execute(partition, context.task_ctx()).unwrap();
            let batches = datafusion::physical_plan::common::collect(stream).await.unwrap();
            rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        }
        assert_eq!(rows, 20);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changed_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("wide.parquet");
    write_wide(&path, 12, 0..50_000, true);
    let (context, manager, _) = session(data.path()).await;
    write_wide(&path, 12, 7..50_002, true);
    let error =
        crate::support::slt::run(&context, "SELECT * FROM wide LIMIT 10").await.unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
    crate::support::assert_all_frees(&manager).await;
}
