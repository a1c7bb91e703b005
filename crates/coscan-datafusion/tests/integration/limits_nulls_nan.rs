//! No row is lost, doubled or out of order: limits below joins, NULL and NaN in keys and bounds.

use std::path::Path;
use std::sync::Arc;

use coscan_runtime::core::PolicyKind;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};

use crate::support::{create, create_ordered, explain, manager, plain, run, shared};

fn write_column(path: &Path, values: ArrayRef) {
    crate::support::write(path, &RecordBatch::try_from_iter([("k", values)]).unwrap(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keys_of_a_join_do_not_prune_what_a_limit_counts() {
    let data = tempfile::tempdir().unwrap();
    let (numbers, few) = (data.path().join("numbers"), data.path().join("few"));
    std::fs::create_dir(&numbers).unwrap();
    std::fs::create_dir(&few).unwrap();
    crate::support::write_numbers(&numbers.join("numbers.parquet"), 0..4600);
    crate::support::write_numbers(&few.join("few.parquet"), 2000..2010);
    let context = shared(&manager(PolicyKind::Relevance));
    create_ordered(&context, "sorted", "id", &numbers).await;
    create(&context, "few", &few).await;
    let sql = "SELECT count(*), max(first.id) FROM (SELECT id FROM sorted ORDER BY id LIMIT 1000) first \
               JOIN few ON few.id = first.id";
    let text = explain(&context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("fetch=1000"), "the scan has taken the limit over: {text}");
    assert_eq!(run(&context, sql).await, ["0 NULL"]);
}

#[tokio::test]
async fn nulls_in_the_key_of_several_files_are_not_taken_for_ordered() {
    let data = tempfile::tempdir().unwrap();
    let keys = |ids: std::ops::Range<i64>, null: bool| -> ArrayRef {
        Arc::new(ids.map(Some).chain(null.then_some(None)).collect::<Int64Array>())
    };
    write_column(&data.path().join("a.parquet"), keys(0..250, true));
    write_column(&data.path().join("b.parquet"), keys(250..500, false));
    let context = shared(&manager(PolicyKind::Relevance));
    create_ordered(&context, "sorted", "k", data.path()).await;
    let sql = "SELECT k FROM sorted ORDER BY k";
    let text = explain(&context, &format!("EXPLAIN {sql}")).await;
    assert!(text.contains("order=any"), "{text}");
    let rows = run(&context, sql).await;
    assert_eq!((rows[250].as_str(), rows[500].as_str()), ("250", "NULL"));

    // Files without nulls are in order, and so is one file with nulls.
    for (name, files) in
        [("whole", vec![(0..250, false), (250..500, false)]), ("one", vec![(0..250, true)])]
    {
        let directory = data.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        for (position, (ids, null)) in files.into_iter().enumerate() {
            write_column(&directory.join(format!("{position}.parquet")), keys(ids, null));
        }
        run(&context, "DROP TABLE sorted").await;
        create_ordered(&context, "sorted", "k", &directory).await;
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        assert!(text.contains("order=table"), "{name}: {text}");
    }
}

#[tokio::test]
async fn nan_in_the_key_of_several_files_is_not_taken_for_ordered() {
    let data = tempfile::tempdir().unwrap();
    let keys = |ids: std::ops::Range<i64>, nan: bool| -> ArrayRef {
        let ids = ids.map(|id| id as f64);
        Arc::new(Float64Array::from_iter_values(ids.chain(nan.then_some(f64::NAN))))
    };
    write_column(&data.path().join("a.parquet"), keys(0..250, true));
    write_column(&data.path().join("b.parquet"), keys(250..500, false));
    let context = shared(&manager(PolicyKind::Relevance));
    create_ordered(&context, "sorted", "k", data.path()).await;
    let rows = run(&context, "SELECT k FROM sorted ORDER BY k").await;
    assert_eq!((rows[250].as_str(), rows[500].as_str()), ("250.0", "NaN"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_nan_and_zeros_are_found_whatever_the_chunks() {
    let data = tempfile::tempdir().unwrap();
    // In each tenth of the rows one value differs from the others, which are all about the number
    // of the tenth.
    let odd = [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300];
    let value = |row: i64| match odd.get((row / 100) as usize) {
        Some(&odd) if row % 100 == 37 => odd,
        _ => (row / 100) as f64 + (row % 100) as f64 / 1000.0,
    };
    write_column(
        &data.path().join("floats.parquet"),
        Arc::new(Float64Array::from_iter_values((0..1000).map(value))),
    );
    let unpruned = plain();
    for option in [
        "execution.parquet.pruning",
        "execution.parquet.enable_page_index",
        "execution.collect_statistics",
        "optimizer.enable_dynamic_filter_pushdown",
    ] {
        run(&unpruned, &format!("SET datafusion.{option} = false")).await;
    }
    let sessions = [shared(&manager(PolicyKind::Relevance)), {
        // Chunks as large as usual: zones are row groups.
        let context = plain();
        let coscan = coscan_datafusion::CoscanOptions::new(&manager(PolicyKind::Relevance));
        coscan.with_direct_bytes_max(0).install(&context).unwrap();
        context
    }];
    create(&unpruned, "floats", data.path()).await;
    for context in &sessions {
        create(context, "floats", data.path()).await;
    }
    for filter in [
        "k > 9.5",
        "k >= 1e300",
        "k > 'Infinity'::double",
        "k < -5",
        "k <= '-Infinity'::double",
        "k < '-Infinity'::double",
        "k = 'NaN'::double",
        "isnan(k)",
        "k <> 5",
        "NOT (k < 9.5)",
        "-k < -9.5",
        "k = 0",
        "k = -0.0",
        "k < 0",
        "k BETWEEN 2.03 AND 2.04",
        "k >= -0.0 AND k <= 0",
        "k > -0.0 AND k < 5",
        "k BETWEEN 9.5 AND 'NaN'::double",
        "k = 5.01 OR k > 9.9",
        "k IN (2.03, 4.05, 'NaN'::double)",
        "k IN (2.03, 4.05, 6.07, 8.09)",
        "2.5 < k AND 3.5 > k",
        "k NOT BETWEEN 0.5 AND 8.5",
        "abs(k) > 100",
    ] {
        let sql = format!(
            "SELECT count(*), sum(CASE WHEN isnan(k) THEN 1 ELSE 0 END) FROM floats WHERE {filter}"
        );
        let expected = run(&unpruned, &sql).await;
        for (session, context) in sessions.iter().enumerate() {
            assert_eq!(run(context, &sql).await, expected, "{filter}, session {session}");
        }
    }
    for (filter, chunks) in [("k BETWEEN 2.03 AND 2.04", 4), ("k = 4.01", 3), ("k > 9.5", 4)] {
        let sql = format!("EXPLAIN SELECT k FROM floats WHERE {filter}");
        let text = crate::support::explain(&sessions[0], &sql).await;
        assert!(text.contains(&format!("chunks={chunks} of 10")), "{filter}: {text}");
    }
    for order in ["k", "k DESC"] {
        // DataFusion sorts -0.0 before 0.0 but compares them as equal, so its top-k keeps the first
        // one, in any order of chunks. Adding zero gives both the same sign.
        let sql = format!("SELECT k + 0 FROM floats ORDER BY {order} LIMIT 4");
        let expected = run(&unpruned, &sql).await;
        for context in &sessions {
            assert_eq!(run(context, &sql).await, expected, "{order}");
        }
    }
}
