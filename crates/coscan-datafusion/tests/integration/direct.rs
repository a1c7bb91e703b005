//! Very selective scans are left to the engine's own scan, which reads through the same store and notices changed
//! files.

use std::path::Path;
use std::sync::Arc;

use coscan_datafusion::CoscanOptions;
use coscan_runtime::ManagerReport;
use coscan_storage::stores::StoreMetrics;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

use crate::support::{explain, leaf, plan, run};

const SELECTIVE: &str = "SELECT id, text FROM numbers WHERE id BETWEEN 20100 AND 20103";
const ROWS: [&str; 4] =
    ["20100 text 20100", "20101 text 20101", "20102 text 20102", "20103 text 20103"];

/// A table of ten chunks of 10 000 rows, each column in twenty data pages, and the metrics of reads from it.
async fn session(
    location: &Path,
    direct_bytes_max: Option<u64>,
) -> (SessionContext, Arc<StoreMetrics>) {
    let limit = |coscan: CoscanOptions| match direct_bytes_max {
        Some(bytes) => coscan.with_direct_bytes_max(bytes),
        None => coscan,
    };
    crate::support::metered(location, 10_000, limit).await
}

async fn leaf_name(context: &SessionContext, sql: &str) -> String {
    leaf(&plan(context, sql).await).name().to_owned()
}

#[tokio::test]
async fn a_selective_scan_reads_only_the_pages_it_needs() {
    let data = tempfile::tempdir().unwrap();
    let (context, direct) = session(data.path(), None).await;
    assert_eq!(leaf_name(&context, SELECTIVE).await, "DataSourceExec");
    assert_eq!(run(&context, SELECTIVE).await, ROWS);
    let direct = direct.snapshot();
    let text = explain(&context, &format!("EXPLAIN {SELECTIVE}")).await;
    assert!(text.contains("not_shared=selective ("), "{text}");
    let (context, shared) = session(data.path(), Some(0)).await;
    assert_eq!(leaf_name(&context, SELECTIVE).await, "SharedScanExec");
    assert_eq!(run(&context, SELECTIVE).await, ROWS);
    let shared = shared.snapshot();
    assert!(direct.bytes > 0 && direct.bytes * 4 <= shared.bytes, "{direct:?} {shared:?}");
}

#[tokio::test]
async fn columns_may_have_other_places_than_in_the_file() {
    let data = tempfile::tempdir().unwrap();
    let (context, _) = session(data.path(), None).await;
    let create = format!(
        "CREATE EXTERNAL TABLE other (\"key\" BIGINT, id BIGINT, value DOUBLE, text VARCHAR) \
         STORED AS PARQUET LOCATION '{}'",
        data.path().display()
    );
    run(&context, &create).await;
    let sql = SELECTIVE.replace("numbers", "other");
    assert_eq!(leaf_name(&context, &sql).await, "DataSourceExec");
    assert_eq!(run(&context, &sql).await, ROWS);
}

#[tokio::test]
async fn less_selective_scans_are_shared() {
    let data = tempfile::tempdir().unwrap();
    let (context, _) = session(data.path(), None).await;
    for sql in [
        "SELECT sum(value) FROM numbers",
        "SELECT sum(value) FROM numbers WHERE id < 5000",
        "SELECT sum(value) FROM numbers WHERE key = 3",
        "SELECT sum(value) FROM numbers WHERE id % 1000 = 3",
    ] {
        assert_eq!(leaf_name(&context, sql).await, "SharedScanExec", "{sql}");
    }
    let (context, _) = session(data.path(), Some(100)).await;
    assert_eq!(leaf_name(&context, SELECTIVE).await, "SharedScanExec", "more than 100 bytes");
}

#[tokio::test]
async fn a_session_without_sharing_reads_for_itself() {
    let data = tempfile::tempdir().unwrap();
    let (context, _) = session(data.path(), Some(0)).await;
    let location = data.path().join("numbers.parquet");
    let options = ParquetReadOptions::default();
    context.register_parquet("made", location.to_str().unwrap(), options).await.unwrap();
    let manager = CoscanOptions::of(context.state().config()).unwrap().manager().clone();
    let sum = |table: &str| format!("SELECT sum(value) FROM {table} WHERE id >= 20000");
    let rows = run(&context, &sum("numbers")).await;
    run(&context, "SET coscan.sharing = false").await;
    let before = manager.report();
    assert!(before.slices_decoded > 0, "the first scan was shared");
    for sql in ["numbers", "made"].map(sum) {
        assert_eq!(leaf_name(&context, &sql).await, "DataSourceExec", "{sql}");
        assert_eq!(run(&context, &sql).await, rows, "{sql}");
        let text = explain(&context, &format!("EXPLAIN {sql}")).await;
        // The engine plans the scan of its own table as it would without coscan.
        let says_why = text.contains("not_shared=coscan.sharing is false");
        assert_eq!(says_why, sql.contains("numbers"), "{text}");
    }
    let after = manager.report();
    let decoded = |report: &ManagerReport| (report.slices_decoded, report.slices_reused);
    assert_eq!(decoded(&after), decoded(&before));
    assert!(run(&context, "SELECT id FROM numbers WHERE id < 0").await.is_empty());
    run(&context, "SET coscan.sharing = true").await;
    for sql in ["numbers", "made"].map(sum) {
        assert_eq!(leaf_name(&context, &sql).await, "SharedScanExec", "{sql}");
    }
}

#[tokio::test]
async fn a_file_that_changed_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let (context, _) = session(data.path(), None).await;
    crate::support::write(
        &data.path().join("numbers.parquet"),
        &crate::support::numbers(7..100_007),
        10_000,
    );
    let error = crate::support::slt::run(&context, SELECTIVE).await.unwrap_err().to_string();
    assert!(error.contains("changed") && error.contains("numbers.parquet"), "{error}");
}
