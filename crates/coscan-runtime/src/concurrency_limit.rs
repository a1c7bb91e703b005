//! An adaptive limit on the bytes requested of a device at once.
//!
//! A device answers requests in order of arrival, so requests that urgent ones may overtake have to wait here: no more is
//! sent than keeps the device busy, the rest is queued, and an urgent request goes ahead of the queue.
//!
//! The limit is learned from latencies. While requests take little longer than they do alone, the device serves them in
//! parallel (as an object store does, or a disk with room in its queue), and the limit grows; when they take longer they
//! queue at the device, and it shrinks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Bytes per permit of the semaphore.
const UNIT_BYTES: u64 = 1024;

/// Requests of the largest size that are always admitted: the one that the device serves, and the next.
const REQUESTS_MIN: u64 = 2;

/// How much longer than alone a request may take, relative to its latency alone. One request queued at the device keeps it
/// busy, so this need not be much.
const STRETCH_MAX: f64 = 0.5;

/// The weight of a new latency in the moving average of latencies alone.
const WEIGHT: f64 = 0.125;

/// The limits of all devices, by the address of the store.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    limits: Mutex<BTreeMap<String, Arc<ConcurrencyLimit>>>,
    floor: u32,
    wait: Duration,
}

impl ConcurrencyLimits {
    /// For requests of at most `request_bytes`. Latencies up to `wait` above those alone do not shrink a limit.
    pub(crate) fn new(request_bytes: u64, wait: Duration) -> Self {
        let floor = units(request_bytes).saturating_mul(u32::try_from(REQUESTS_MIN).unwrap_or(1));
        Self { limits: Mutex::default(), floor, wait }
    }

    /// The limit of a store.
    pub(crate) fn of(&self, store: &str) -> Arc<ConcurrencyLimit> {
        let mut limits = lock(&self.limits);
        if let Some(limit) = limits.get(store) {
            return Arc::clone(limit);
        }
        let limit = Arc::new(ConcurrencyLimit::new(self.floor, self.wait));
        limits.insert(store.to_owned(), Arc::clone(&limit));
        limit
    }
}

/// The limit of one device.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimit {
    /// Units that may still be sent, first come, first served.
    permits: Arc<Semaphore>,
    floor: u32,
    wait: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Units that may be at the device.
    window: u32,
    /// Units that are, those of urgent requests among them.
    sent: u32,
    /// The average latency in seconds while no more than the floor is at the device.
    alone: Option<f64>,
}

impl ConcurrencyLimit {
    fn new(floor: u32, wait: Duration) -> Self {
        let permits = Arc::new(Semaphore::new(floor as usize));
        let state = Mutex::new(State { window: floor, sent: 0, alone: None });
        Self { permits, floor, wait, state }
    }

    /// Waits until a request of this size may be sent: at once when it is or becomes urgent.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        bytes: u64,
        urgent: impl Future<Output = ()>,
    ) -> Admission {
        let units = units(bytes);
        let permit = Arc::clone(&self.permits).acquire_many_owned(units.min(self.floor));
        let permit = tokio::select! {
            biased;
            () = urgent => None,
            permit = permit => Some(permit.expect("the semaphore is never closed")),
        };
        let mut state = lock(&self.state);
        state.sent = state.sent.saturating_add(units);
        let is_alone = state.sent <= self.floor;
        Admission { limit: Arc::clone(self), units, permit, is_alone, sent: Instant::now() }
    }
}

/// A request at the device, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: Arc<ConcurrencyLimit>,
    units: u32,
    /// `None` if it was urgent.
    permit: Option<OwnedSemaphorePermit>,
    /// Little else was at the device when it was sent.
    is_alone: bool,
    sent: Instant,
}

impl Admission {
    /// It was answered: the limit learns from its latency.
    pub(crate) fn answered(mut self) {
        let took = self.sent.elapsed().as_secs_f64();
        let mut state = lock(&self.limit.state);
        if self.is_alone {
            let alone = state.alone.get_or_insert(took);
            *alone += (took - *alone) * WEIGHT;
        }
        let (Some(alone), Some(permit)) = (state.alone, &mut self.permit) else { return };
        let target = alone + (alone * STRETCH_MAX).max(self.limit.wait.as_secs_f64());
        let error = ((target - took) / target).max(-1.0);
        // At most as much as was answered: within the time of a request the window at most doubles or halves.
        let part = if error > 0.0 { (2.0 * error).min(1.0) } else { error / 2.0 };
        let change = (part.abs() * f64::from(self.units)) as u32;
        let is_full = self.limit.permits.available_permits() == 0;
        if error > 0.0 && is_full {
            state.window = state.window.saturating_add(change);
            self.limit.permits.add_permits(change as usize);
        } else if error < 0.0 {
            let change = change.min(state.window - self.limit.floor);
            if let Some(taken) = permit.split(change as usize) {
                taken.forget();
                state.window -= change;
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut state = lock(&self.limit.state);
        state.sent = state.sent.saturating_sub(self.units);
    }
}

/// Bytes in permits, rounded up.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).max(1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
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
                ConcurrencyLimits::new(REQUEST_BYTES, Duration::from_millis(2)).of("memory:///");
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

        /// When each of many requests was answered.
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
        drop(
            tokio::time::timeout(Duration::from_secs(2), hurried).await.expect("it is urgent now"),
        );
        drop(held);
        reader.limit.admit(1, pending()).await;
    }
}
