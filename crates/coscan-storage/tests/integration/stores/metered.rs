use std::sync::Arc;
use std::time::Duration;

use coscan_storage::stores::{
    COALESCE_GAP_BYTES, LimitedStore, Limits, MeteredStore, ReadCounts, ReadRecord, StoreMetrics,
};
use coscan_testing::Faults;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};

use super::{content, memory_with};

#[tokio::test]
async fn neighbouring_ranges_are_one_request() {
    let content = content(1_000_000);
    let inner = memory_with(&[("file", content.clone())]).await;
    let reads = Faults::default();
    let store = MeteredStore::new(reads.around(inner), StoreMetrics::new());

    let beyond_gap = 110 + COALESCE_GAP_BYTES + 1;
    let ranges = [beyond_gap..beyond_gap + 10, 100..110, 0..10, 5..20];
    let read = store.get_ranges(&Path::from("file"), &ranges).await.unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert_eq!(read, content[range.start as usize..range.end as usize]);
    }
    assert_eq!(store.metrics().snapshot(), ReadCounts { requests: 2, bytes: 110 + 10 });
    assert_eq!(reads.take_reads().len(), 2);
}

#[tokio::test]
async fn content_counts_but_not_metadata_or_failures() {
    let inner = memory_with(&[("file", content(100))]).await;
    let store = MeteredStore::new(inner, StoreMetrics::new());
    let file = Path::from("file");
    store.head(&file).await.unwrap();
    store.get(&Path::from("missing")).await.unwrap_err();
    assert_eq!(store.metrics().snapshot(), ReadCounts::default());

    store.get(&file).await.unwrap();
    store.get_range(&file, 10..15).await.unwrap();
    store.get_range(&file, 90..200).await.unwrap();
    assert_eq!(store.metrics().snapshot(), ReadCounts { requests: 3, bytes: 100 + 5 + 10 });

    store.metrics().reset();
    assert_eq!(store.metrics().snapshot(), ReadCounts::default());
}

#[tokio::test(start_paused = true)]
async fn the_log_says_when_and_where() {
    let inner = memory_with(&[("file", content(1_000_000))]).await;
    let limits = Limits { bytes_per_second: Some(1_000_000), latency: Duration::ZERO };
    let store =
        MeteredStore::new(Arc::new(LimitedStore::new(inner, limits)), StoreMetrics::with_log());
    let file = Path::from("file");
    store.get_range(&file, 100_000..350_000).await.unwrap();
    let suffix = GetOptions::new().with_range(Some(object_store::GetRange::Suffix(10)));
    store.get_opts(&file, suffix).await.unwrap();

    let record = |when, offset, bytes| ReadRecord {
        when: Duration::from_millis(when),
        path: file.clone(),
        offset,
        bytes,
    };
    let expected = [record(0, 100_000, 250_000), record(250, 999_990, 10)];
    assert_eq!(store.metrics().take_log(), expected);
    assert_eq!(store.metrics().take_log(), []);
}

#[tokio::test]
async fn no_log_is_kept_unless_asked_for() {
    let store = MeteredStore::new(memory_with(&[("file", content(10))]).await, StoreMetrics::new());
    store.get(&Path::from("file")).await.unwrap();
    assert_eq!(store.metrics().take_log(), []);
}
