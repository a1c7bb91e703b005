//! The id of a query travels with its scans and shows in EXPLAIN ANALYZE.

use std::sync::Arc;

use coscan_datafusion::runtime::{BufferManager, EventKind, Options, ScanLabel};
use coscan_datafusion::{QueryId, install};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{SessionConfig, SessionContext};

async fn run(config: SessionConfig) -> (ScanLabel, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("numbers.parquet");
    let writer = SessionContext::new();
    let rows = writer.sql("SELECT value FROM generate_series(1, 1000)").await.unwrap();
    rows.write_parquet(path.to_str().unwrap(), Default::default(), None).await.unwrap();
    let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
    let mut events = manager.subscribe(1000);
    let context = SessionContext::new_with_config(config);
    install(&context, &manager).unwrap();
    let create =
        format!("CREATE EXTERNAL TABLE numbers STORED AS PARQUET LOCATION '{}'", path.display());
    context.sql(&create).await.unwrap();
    let query = context.sql("EXPLAIN ANALYZE SELECT sum(value) FROM numbers").await.unwrap();
    let plan = pretty_format_batches(&query.collect().await.unwrap()).unwrap().to_string();
    let label = std::iter::from_fn(|| events.try_next()).find_map(|event| match event.kind {
        EventKind::ScanStarted { label, .. } => Some(label),
        _ => None,
    });
    (label.unwrap(), plan, context.session_id())
}

#[tokio::test]
async fn a_query_id_travels_with_its_scans() {
    let config = SessionConfig::new().with_extension(Arc::new(QueryId::new("q-17")));
    let (label, plan, _) = run(config).await;
    assert_eq!(label.query.as_deref(), Some("q-17"));
    assert_eq!(label.table.as_deref(), Some("numbers"));
    assert!(plan.contains("query=q-17"), "{plan}");
}

#[tokio::test]
async fn without_one_scans_are_named_by_their_session() {
    let (label, plan, session) = run(SessionConfig::new()).await;
    assert_eq!(label.query.as_deref(), Some(&*session));
    assert!(!plan.contains("query="), "{plan}");
}
