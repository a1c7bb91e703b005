use std::time::Duration;

use coscan_storage::stores::{FaultCounts, Faults, FaultyStore};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use tokio::time::Instant;

use super::{content, memory_with};

const REQUESTS: u64 = 1_000;

/// The bytes of each request; `None` if it failed.
async fn outcomes(faults: Faults) -> (Vec<Option<usize>>, FaultCounts) {
    let store = FaultyStore::new(memory_with(&[("file", content(100))]).await, faults);
    let mut outcomes = Vec::new();
    for _ in 0..REQUESTS {
        let read = store.get_range(&Path::from("file"), 10..90).await;
        outcomes.push(read.ok().map(|bytes| bytes.len()));
    }
    (outcomes, store.counts())
}

fn one_in_ten(seed: u64) -> Faults {
    Faults { seed, fail_one_in: 10, truncate_one_in: 10, ..Faults::default() }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults() {
    let (first, counts) = outcomes(one_in_ten(7)).await;
    let (again, _) = outcomes(one_in_ten(7)).await;
    let (other, _) = outcomes(one_in_ten(8)).await;
    assert_eq!(first, again);
    assert_ne!(first, other);

    let count_of = |outcome| first.iter().filter(|&&each| each == outcome).count() as u64;
    assert_eq!(counts.requests, REQUESTS);
    assert_eq!(counts.failed, count_of(None));
    assert_eq!(counts.truncated, count_of(Some(40)));
    assert_eq!(REQUESTS - counts.failed - counts.truncated, count_of(Some(80)));
}

#[tokio::test]
async fn faults_have_the_given_frequency() {
    for seed in 0..5 {
        let (_, counts) = outcomes(one_in_ten(seed)).await;
        // Five standard deviations around a hundred, and around ninety for the second draw.
        assert!((53..=147).contains(&counts.failed), "{counts:?}");
        assert!((45..=135).contains(&counts.truncated), "{counts:?}");
    }
    let (_, counts) = outcomes(Faults::default()).await;
    assert_eq!(counts, FaultCounts { requests: REQUESTS, ..FaultCounts::default() });
}

#[tokio::test]
async fn the_next_requests_fail_on_demand() {
    let file = Path::from("file");
    let store = FaultyStore::new(memory_with(&[("file", content(100))]).await, Faults::default());
    store.fail_next(2);
    let error = store.get(&file).await.unwrap_err();
    assert!(matches!(error, Error::Generic { .. }), "{error}");
    assert!(error.to_string().contains("request 0, for file, fails on purpose"), "{error}");
    store.head(&file).await.unwrap_err();
    store.get(&file).await.unwrap();

    // The second of three ranges is enough to fail a call.
    store.fail_next(1);
    store.get_ranges(&file, &[0..1, 50..51, 99..100]).await.unwrap_err();
    assert_eq!(store.counts().requests, 3 + 3);
}

#[tokio::test]
async fn truncated_ranges_are_the_first_half() {
    let file = Path::from("file");
    let faults = Faults { truncate_one_in: 1, ..Faults::default() };
    let store = FaultyStore::new(memory_with(&[("file", content(100))]).await, faults);
    let read = store.get_ranges(&file, &[0..10, 20..25]).await.unwrap();
    assert_eq!(read, [&content(100)[0..5], &content(100)[20..22]]);
    let result = store.get(&file).await.unwrap();
    assert_eq!(result.range, 0..100);
    assert_eq!(result.bytes().await.unwrap(), content(100)[..50]);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_request_waits_and_then_works() {
    let stall = Duration::from_secs(3);
    let faults = Faults { stall_one_in: 1, stall, ..Faults::default() };
    let store = FaultyStore::new(memory_with(&[("file", content(100))]).await, faults);
    let start = Instant::now();
    let read = store.get(&Path::from("file")).await.unwrap().bytes().await.unwrap();
    assert_eq!(start.elapsed(), stall);
    assert_eq!(read, content(100));
    assert_eq!(store.counts().stalled, 1);
}
