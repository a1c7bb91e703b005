//! Tests of limits, all on tokio's paused clock: durations are exact.

use std::sync::Arc;
use std::time::Duration;

use coscan_storage::stores::{DirectFileStore, LimitedStore, Limits};
use futures::future::join;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::time::Instant;

use super::{content, memory_with};

const MEGABYTE_PER_SECOND: Limits =
    Limits { bytes_per_second: Some(1_000_000), latency: Duration::from_millis(10) };

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

async fn limited(limits: Limits) -> (LimitedStore, Path) {
    let inner = memory_with(&[("file", content(2_000_000))]).await;
    (LimitedStore::new(inner, limits), Path::from("file"))
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_its_bytes_and_the_latency() {
    let (store, file) = limited(MEGABYTE_PER_SECOND).await;
    let start = Instant::now();
    let read = store.get_range(&file, 7..500_007).await.unwrap();
    assert_eq!(start.elapsed(), milliseconds(500 + 10));
    assert!(read == content(2_000_000)[7..500_007]);
}

#[tokio::test(start_paused = true)]
async fn requests_share_the_bandwidth_and_their_latencies_overlap() {
    let (store, file) = limited(MEGABYTE_PER_SECOND).await;
    let start = Instant::now();
    let timed = |range| async {
        store.get_range(&file, range).await.unwrap();
        start.elapsed()
    };
    let (first, second) = join(timed(0..300_000), timed(0..200_000)).await;
    assert_eq!((first, second), (milliseconds(300 + 10), milliseconds(500 + 10)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_device_saves_nothing_up() {
    let (store, file) = limited(MEGABYTE_PER_SECOND).await;
    store.get_range(&file, 0..1_000).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let start = Instant::now();
    store.get_range(&file, 0..100_000).await.unwrap();
    assert_eq!(start.elapsed(), milliseconds(100 + 10));
}

#[tokio::test(start_paused = true)]
async fn each_range_is_charged_with_the_gap_it_bridges() {
    let (store, file) = limited(MEGABYTE_PER_SECOND).await;
    let start = Instant::now();
    // Joined: 0..50_000. Alone: 1_000_000..1_100_000.
    let ranges = [0..10_000, 20_000..50_000, 1_000_000..1_100_000];
    let read = store.get_ranges(&file, &ranges).await.unwrap();
    assert_eq!(start.elapsed(), milliseconds(50 + 100 + 10));
    assert!(read[1] == content(2_000_000)[20_000..50_000]);
}

#[tokio::test(start_paused = true)]
async fn metadata_and_failures_cost_the_latency() {
    let (store, file) = limited(MEGABYTE_PER_SECOND).await;
    let start = Instant::now();
    store.head(&file).await.unwrap();
    assert_eq!(start.elapsed(), milliseconds(10));
    store.get(&Path::from("missing")).await.unwrap_err();
    assert_eq!(start.elapsed(), milliseconds(20));
}

#[tokio::test(start_paused = true)]
async fn without_a_bandwidth_only_the_latency_counts() {
    let (store, file) = limited(Limits { bytes_per_second: None, latency: milliseconds(30) }).await;
    let start = Instant::now();
    store.get(&file).await.unwrap().bytes().await.unwrap();
    assert_eq!(start.elapsed(), milliseconds(30));
}

#[tokio::test(start_paused = true)]
async fn a_faster_device_underneath_adds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), content(2_000_000)).unwrap();
    let stores: [Arc<dyn ObjectStore>; 2] = [
        Arc::new(DirectFileStore::new_with_prefix(directory.path()).unwrap()),
        Arc::new(LocalFileSystem::new_with_prefix(directory.path()).unwrap()),
    ];
    for inner in stores {
        let store = LimitedStore::new(inner, MEGABYTE_PER_SECOND);
        let start = Instant::now();
        let read = store.get_range(&Path::from("file"), 1..100_001).await.unwrap();
        assert_eq!(start.elapsed(), milliseconds(100 + 10));
        assert!(read == content(2_000_000)[1..100_001]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_has_used_the_device() {
    let (store, file) = limited(MEGABYTE_PER_SECOND).await;
    let start = Instant::now();
    let given_up = store.get_range(&file, 0..400_000);
    tokio::time::timeout(milliseconds(50), given_up).await.unwrap_err();
    store.get_range(&file, 0..100_000).await.unwrap();
    assert_eq!(start.elapsed(), milliseconds(400 + 100 + 10));
}
