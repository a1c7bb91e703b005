use std::future::pending;
use std::ops::Range;

use coscan_storage::stores::{LimitedStore, Limits};
use futures::future::join_all;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::*;

const REQUEST_BYTES: u64 = 1 << 20;

/// A file on a device in virtual time, behind a limit.
struct Reader {
    store: Arc<dyn ObjectStore>,
    limits: Limits,
    limit: Arc<ConcurrencyLimit>,
}

impl Reader {
    async fn new(bytes_per_second: u64, latency_ms: u64) -> Self {
        let memory = InMemory::new();
        let bytes = vec![0; usize::try_from(REQUEST_BYTES).unwrap()];
        memory.put(&Path::from("file"), bytes.into()).await.unwrap();
        let latency = Duration::from_millis(latency_ms);
        let limits = Limits { bytes_per_second: Some(bytes_per_second), latency };
        let store = Arc::new(LimitedStore::new(Arc::new(memory), limits));
        let limit =
            ConcurrencyLimits::new(REQUEST_BYTES, Duration::from_millis(2)).of(&Device::Local(1));
        Self { store, limits, limit }
    }

    async fn read(&self, bytes: Range<u64>, is_urgent: bool) -> Instant {
        let urgent = async {
            if !is_urgent {
                std::future::pending().await
            }
        };
        let admission = self.limit.admit(bytes.end - bytes.start, urgent).await;
        self.store.get_range(&Path::from("file"), bytes).await.unwrap();
        admission.answered();
        Instant::now()
    }

    /// Sends many requests. Returns the time at which each was answered.
    async fn stream(&self, requests: usize) -> Vec<Instant> {
        join_all((0..requests).map(|_| self.read(0..REQUEST_BYTES, false))).await
    }

    fn transfer(&self, bytes: u64) -> Duration {
        let bytes_per_second = self.limits.bytes_per_second.unwrap();
        Duration::from_secs_f64(bytes as f64 / bytes_per_second as f64)
    }
}

#[tokio::test(start_paused = true)]
async fn an_urgent_request_waits_only_for_what_was_sent() {
    let reader = Reader::new(200_000_000, 0).await;
    let urgent = async {
        let mut longest = Duration::ZERO;
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(33)).await;
            let asked = Instant::now();
            reader.read(0..1000, true).await;
            longest = longest.max(asked.elapsed());
        }
        longest
    };
    let (answered, longest) = tokio::join!(reader.stream(200), urgent);
    assert!(longest <= reader.transfer(4 * REQUEST_BYTES), "{longest:?}");
    assert!(answered.is_sorted(), "first come, first served");
}

#[tokio::test(start_paused = true)]
async fn a_stream_gets_all_that_the_device_can_do() {
    for (bytes_per_second, latency_ms) in
        [(200_000_000, 0), (200_000_000, 20), (1_000_000_000, 30), (20_000_000, 5)]
    {
        let reader = Reader::new(bytes_per_second, latency_ms).await;
        reader.stream(400).await; // by now the limit knows the device
        let started = Instant::now();
        reader.stream(400).await;
        let least = reader.transfer(400 * REQUEST_BYTES) + reader.limits.latency;
        let took = started.elapsed();
        assert!(took < least.mul_f64(1.05), "{took:?}, {least:?} at {:?}", reader.limits);
    }
}

#[tokio::test(start_paused = true)]
async fn less_is_sent_to_a_device_that_has_become_slow() {
    let fast = Reader::new(1_000_000_000, 30).await;
    fast.stream(400).await;
    let slow = Reader { limit: fast.limit, ..Reader::new(50_000_000, 30).await };
    let urgent = async {
        tokio::time::sleep(slow.transfer(200 * REQUEST_BYTES)).await;
        let asked = Instant::now();
        slow.read(0..1000, true).await;
        asked.elapsed()
    };
    let (_, waited) = tokio::join!(slow.stream(400), urgent);
    assert!(waited < slow.transfer(10 * REQUEST_BYTES), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn small_requests_do_not_make_large_ones_look_slow() {
    let reader = Reader::new(200_000_000, 20).await;
    for _ in 0..200 {
        reader.read(0..1000, true).await;
    }
    reader.stream(400).await;
    let started = Instant::now();
    reader.stream(400).await;
    let least = reader.transfer(400 * REQUEST_BYTES) + reader.limits.latency;
    let took = started.elapsed();
    assert!(took < least.mul_f64(1.05), "{took:?}, {least:?}");
    // The requests in between do not, either.
    let lookups = async {
        loop {
            reader.read(0..1000, true).await;
        }
    };
    let started = Instant::now();
    tokio::select! {
        _ = reader.stream(400) => {}
        () = lookups => {}
    }
    let took = started.elapsed();
    assert!(took < least.mul_f64(1.10), "{took:?}, {least:?}");
}

#[tokio::test(start_paused = true)]
async fn urgent_requests_are_not_without_bound() {
    let reader = Reader::new(200_000_000, 0).await;
    let soon = Duration::from_secs(1);
    let _window = reader.limit.admit(100 * REQUEST_BYTES, pending()).await;
    let _next = tokio::time::timeout(soon, reader.limit.admit(1, pending())).await;
    let mut held = Vec::new();
    let next = || tokio::time::timeout(soon, reader.limit.admit(1, std::future::ready(())));
    while let Ok(admission) = next().await {
        held.push(admission);
        assert!(held.len() <= 1_000, "there is a limit");
    }
    assert_eq!(held.len(), URGENT_MAX);
    drop(held.pop());
    assert!(next().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn requests_count_however_small_they_are() {
    let reader = Reader::new(200_000_000, 0).await;
    let mut held = Vec::new();
    let next = || tokio::time::timeout(Duration::from_secs(1), reader.limit.admit(1, pending()));
    while let Ok(admission) = next().await {
        held.push(admission);
        assert!(held.len() <= 1_000, "there is a limit");
    }
    assert_eq!(held.len() as u64, REQUESTS_MIN * REQUEST_BYTES / REQUEST_BYTES_MIN);
}

#[tokio::test(start_paused = true)]
async fn a_failure_halves_what_is_sent_once_for_all_that_were_sent_before() {
    let reader = Reader::new(1_000_000_000, 30).await;
    reader.stream(400).await;
    let window = || lock(&reader.limit.state).window;
    let before = window();
    assert!(before > 8 * reader.limit.floor, "{before}");
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(reader.limit.admit(REQUEST_BYTES, pending()).await);
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    let later = held.split_off(4);
    held.into_iter().for_each(Admission::failed);
    assert_eq!(window(), before - before / 2);
    later.into_iter().for_each(Admission::failed);
    assert_eq!(window(), before - before / 2, "they were sent before");
    for _ in 0..20 {
        tokio::time::advance(Duration::from_millis(1)).await;
        reader.limit.admit(REQUEST_BYTES, pending()).await.failed();
    }
    assert_eq!(window(), reader.limit.floor);
    assert_eq!(reader.limit.permits.available_permits(), reader.limit.floor as usize);
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_in_use_shrinks_as_requests_return() {
    let reader = Reader::new(1_000_000_000, 30).await;
    reader.stream(400).await;
    let mut held = Vec::new();
    while reader.limit.permits.available_permits() >= reader.limit.floor as usize {
        held.push(reader.limit.admit(100 << 30, pending()).await);
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    for admission in held {
        admission.failed();
    }
    let window = lock(&reader.limit.state).window as usize;
    assert_eq!(reader.limit.permits.available_permits(), window);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_makes_room() {
    let reader = Reader::new(200_000_000, 0).await;
    for _ in 0..10 {
        drop(reader.limit.admit(REQUEST_BYTES, pending()).await);
        drop(reader.limit.admit(100 * REQUEST_BYTES, pending()).await);
    }
    let held = join_all((0..2).map(|_| reader.limit.admit(REQUEST_BYTES, pending()))).await;
    let third = reader.limit.admit(1, pending());
    let waits = tokio::time::timeout(Duration::from_secs(1), third).await;
    assert!(waits.is_err(), "an unknown device gets two requests");
    let hurried = reader.limit.admit(1, tokio::time::sleep(Duration::from_secs(1)));
    drop(tokio::time::timeout(Duration::from_secs(2), hurried).await.expect("it is urgent now"));
    drop(held);
    reader.limit.admit(1, pending()).await;
}
