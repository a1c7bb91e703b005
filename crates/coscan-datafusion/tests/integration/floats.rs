//! Filters and top-k on floating-point numbers rule out chunks that are known to hold no NaN, and no row of NaN is lost.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;

use crate::support::{
    assert_all_frees, create, explain, leaf, manager, metric, plain, plan, run, shared, write,
};

/// 20 chunks of rows by `price`, of which one in the fourth chunk is NaN if there is one.
fn write_prices(path: &Path, nan: Option<f64>) {
    let price = |row: i64| match nan {
        Some(nan) if row == 345 => nan,
        _ => row as f64 / 2.0,
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("price", Arc::new(Float64Array::from_iter_values((0..2000).map(price)))),
        ("x", Arc::new((0..2000).collect::<Int64Array>())),
        ("y", Arc::new((0..2000).map(|row| row * 7919 % 2003).collect::<Int64Array>())),
    ];
    write(path, &RecordBatch::try_from_iter(columns).unwrap(), 100);
}

/// The bytes read by plain DataFusion, which rules row groups out by bounds that leave NaN out, and reads all pages of
/// the others.
async fn plain_bytes(location: &Path, sql: &str) -> usize {
    let context = plain();
    run(&context, "SET datafusion.execution.parquet.enable_page_index = false").await;
    create(&context, "t", location).await;
    let plan = plan(&context, sql).await;
    collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    metric(&leaf(&plan), "bytes_scanned")
}

/// The rows of a query, the bytes read for it with nothing in the pool, and the chunks that were delivered.
async fn read(
    manager: &BufferManager,
    context: &SessionContext,
    sql: &str,
) -> (Vec<String>, usize, usize) {
    assert_all_frees(manager).await;
    let plan = plan(context, sql).await;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    let scan = leaf(&plan);
    let rows = crate::support::slt::rows(&batches).unwrap();
    (rows, metric(&scan, "bytes_read"), metric(&scan, "chunks_delivered"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_query_reads_what_plain_datafusion_reads() {
    let data = tempfile::tempdir().unwrap();
    let location = data.path().join("t.parquet");
    write_prices(&location, None);
    for sql in [
        "SELECT sum(x) FROM t WHERE price > 900",
        "SELECT sum(x) FROM t WHERE 75 >= price",
        "SELECT sum(x) FROM t WHERE price > 900 AND x <> 3 AND price <> 950",
        "SELECT x FROM t WHERE price > 900 ORDER BY x LIMIT 3",
    ] {
        let manager = manager(PolicyKind::Relevance);
        let context = shared(&manager);
        crate::support::share_no_results(&context).await;
        create(&context, "t", &location).await;
        let expected = run(&context, sql).await;
        let (rows, bytes, _) = read(&manager, &context, sql).await;
        assert_eq!(rows, expected, "{sql}");
        let plain_bytes = plain_bytes(&location, sql).await;
        assert!(bytes > 0 && bytes <= plain_bytes, "{bytes} for {plain_bytes}: {sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_says_what_is_not_known_yet() {
    let data = tempfile::tempdir().unwrap();
    let location = data.path().join("t.parquet");
    write_prices(&location, Some(f64::NAN));
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", &location).await;
    for sql in ["SELECT x FROM t WHERE price > 900", "SELECT x FROM t ORDER BY price LIMIT 3"] {
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(text.contains("chunks=20 of 20 (0 pruned)"), "{text}");
        assert!(text.contains("may_hold_nan=price in 20 chunks"), "{text}");
    }
    for sql in [
        "SELECT x FROM t WHERE price BETWEEN 100 AND 110",
        "SELECT price FROM t WHERE x > 900",
        "SELECT price FROM t ORDER BY x LIMIT 3",
    ] {
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(!text.contains("may_hold_nan"), "{text}");
    }
    run(&context, "SELECT sum(price) FROM t WHERE x < 500").await;
    let text = explain(&context, "EXPLAIN SELECT x FROM t WHERE price > 900").await;
    assert!(text.contains("chunks=16 of 20 (4 pruned)"), "{text}");
    assert!(text.contains("may_hold_nan=price in 16 chunks"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_top_k_reads_a_few_chunks_once_they_are_known() {
    let data = tempfile::tempdir().unwrap();
    for nan in [None, Some(f64::NAN), Some(-f64::NAN)] {
        let location = data.path().join("t.parquet");
        write_prices(&location, nan);
        let manager = manager(PolicyKind::Relevance);
        let context = shared(&manager);
        run(&context, "SET datafusion.execution.target_partitions = 1").await;
        run(&context, "SET datafusion.execution.batch_size = 16").await;
        create(&context, "t", &location).await;
        for order in ["price", "price DESC", "price DESC NULLS LAST"] {
            let sql = format!("SELECT price, x FROM t ORDER BY {order} LIMIT 5");
            let expected = {
                let reference = plain();
                let off = "SET datafusion.optimizer.enable_dynamic_filter_pushdown = false";
                run(&reference, off).await;
                create(&reference, "t", &location).await;
                run(&reference, &sql).await
            };
            for _ in 0..2 {
                let (rows, _, delivered) = read(&manager, &context, &sql).await;
                assert_eq!(rows, expected, "{sql}, {nan:?}");
                let is_first = order == "price" && delivered == 20;
                assert!(is_first || delivered <= 2, "{delivered} chunks: {sql}, {nan:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_nan_stay_in_selective_scans() {
    let data = tempfile::tempdir().unwrap();
    for nan in [f64::NAN, -f64::NAN] {
        let location = data.path().join("t.parquet");
        write_prices(&location, Some(nan));
        let manager = manager(PolicyKind::Relevance);
        let selective = plain();
        let coscan = CoscanOptions::new(&manager);
        coscan.with_table_options(crate::support::TABLE_OPTIONS).install(&selective).unwrap();
        let whole = shared(&manager);
        create(&selective, "t", &location).await;
        create(&whole, "t", &location).await;
        for sql in [
            "SELECT x FROM t WHERE price > 999 AND x < 1500",
            "SELECT x FROM t WHERE price > 995 AND x BETWEEN 300 AND 400",
            "SELECT x FROM t WHERE price < 2 AND x BETWEEN 300 AND 400",
            "SELECT x FROM t WHERE price < 2 OR price > 999",
            "SELECT x FROM t WHERE price > 999",
            "SELECT x FROM t WHERE price < 2",
        ] {
            for round in 0..2 {
                let mut rows = [run(&selective, sql).await, run(&whole, sql).await];
                rows.iter_mut().for_each(|rows| rows.sort());
                assert_eq!(rows[0], rows[1], "{sql}, {nan}, round {round}");
                let keeps = sql.contains('>') != nan.is_sign_negative() || sql.contains("OR");
                assert_eq!(rows[0].contains(&"345".to_owned()), keeps, "{sql}, {nan}");
            }
        }
        let text = explain(&selective, "EXPLAIN SELECT x FROM t WHERE x = 350 AND price > 1").await;
        assert!(text.contains("not_shared=selective"), "{text}");
    }
}
