//! A store that fails on purpose, to test everything above it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryFutureExt, stream};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetResult, GetResultPayload, ObjectStore, Result};

use super::delegate::object_store_by_reads;
use super::random::mix;

/// The frequency of each fault. None by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// The same seed gives the same faults to requests of the same numbers.
    pub seed: u64,
    /// One in this many requests fails with [`Error::Generic`]; zero is never.
    pub fail_one_in: u64,
    /// One in this many requests waits for [`stall`](Self::stall) first; zero is never.
    pub stall_one_in: u64,
    /// The delay of a stalled request, on tokio's clock.
    pub stall: Duration,
    /// One in this many requests gives only the first half of its bytes; zero is never.
    pub truncate_one_in: u64,
}

/// The counts of a [`FaultyStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts {
    /// All requests, faulty or not.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that stalled.
    pub stalled: u64,
    /// Requests that gave too few bytes.
    pub truncated: u64,
}

/// Any store, with faults in its reads, for tests.
///
/// Read requests are numbered from zero on arrival, each range of `get_ranges` on its own. Seed and number alone
/// decide whether a request is faulty, so a test with a fixed order of requests always fails in the same way. A
/// request has one fault at most; a range of `get_ranges` that fails fails the call.
///
/// Requests for metadata have numbers too; they can fail and stall. Writing and listing always
/// work. Clones share numbers and counts.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    faults: Faults,
    fail_next: Arc<AtomicU64>,
    counts: Arc<Mutex<FaultCounts>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Fail,
    Stall,
    Truncate,
}

impl std::fmt::Display for FaultyStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "FaultyStore({})", self.inner)
    }
}

impl FaultyStore {
    /// Puts `faults` into the reads of `inner`.
    pub fn new(inner: Arc<dyn ObjectStore>, faults: Faults) -> Self {
        Self { inner, faults, fail_next: Arc::default(), counts: Arc::default() }
    }

    /// Fails the next `count` read requests, besides the random faults. Replaces the rest of an earlier call.
    pub fn fail_next(&self, count: u64) {
        self.fail_next.store(count, Ordering::SeqCst);
    }

    /// The counts so far.
    pub fn counts(&self) -> FaultCounts {
        *self.lock_counts()
    }

    fn inner(&self) -> &dyn ObjectStore {
        self.inner.as_ref()
    }

    async fn read(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (number, fault) = self.next_request();
        let is_head = options.head;
        self.suffer(number, fault, location).await?;
        let result = self.inner.get_opts(location, options).await?;
        if fault == Fault::Truncate && !is_head { Ok(truncate(result)) } else { Ok(result) }
    }

    async fn read_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let requests: Vec<(u64, Fault)> = ranges.iter().map(|_| self.next_request()).collect();
        for (number, fault) in &requests {
            self.suffer(*number, *fault, location).await?;
        }
        let mut answers = self.inner.get_ranges(location, ranges).await?;
        for (answer, (_, fault)) in answers.iter_mut().zip(&requests) {
            if *fault == Fault::Truncate {
                *answer = first_half(answer);
            }
        }
        Ok(answers)
    }

    /// Gives the next request its number and its fault.
    fn next_request(&self) -> (u64, Fault) {
        let fails_anyway = self
            .fail_next
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        let mut counts = self.lock_counts();
        let number = counts.requests;
        counts.requests += 1;
        let fault = if fails_anyway { Fault::Fail } else { self.faults.of_request(number) };
        match fault {
            Fault::None => {}
            Fault::Fail => counts.failed += 1,
            Fault::Stall => counts.stalled += 1,
            Fault::Truncate => counts.truncated += 1,
        }
        (number, fault)
    }

    async fn suffer(&self, number: u64, fault: Fault, location: &Path) -> Result<()> {
        match fault {
            Fault::Fail => Err(Error::Generic {
                store: "FaultyStore",
                source: format!("request {number}, for {location}, fails on purpose").into(),
            }),
            Fault::Stall => {
                tokio::time::sleep(self.faults.stall).await;
                Ok(())
            }
            Fault::None | Fault::Truncate => Ok(()),
        }
    }

    fn lock_counts(&self) -> MutexGuard<'_, FaultCounts> {
        // A panic of another holder does not spoil counts.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

object_store_by_reads!(FaultyStore);

impl Faults {
    /// The fault of request `number`. Each kind has a draw; the first hit counts.
    fn of_request(&self, number: u64) -> Fault {
        let kinds = [
            (self.fail_one_in, Fault::Fail),
            (self.stall_one_in, Fault::Stall),
            (self.truncate_one_in, Fault::Truncate),
        ];
        // Mixed twice: seeds that are close together must not give the same faults shifted.
        let mut draw = mix(mix(self.seed) ^ number);
        for (one_in, fault) in kinds {
            if one_in > 0 && draw.is_multiple_of(one_in) {
                return fault;
            }
            draw = mix(draw);
        }
        Fault::None
    }
}

/// The result with half of its content. It still claims the whole range, as a broken connection does.
fn truncate(result: GetResult) -> GetResult {
    let meta = result.meta.clone();
    let range = result.range.clone();
    let attributes = result.attributes.clone();
    let content = stream::once(result.bytes().map_ok(|bytes| first_half(&bytes)).boxed());
    GetResult { payload: GetResultPayload::Stream(content.boxed()), meta, range, attributes }
}

fn first_half(bytes: &Bytes) -> Bytes {
    bytes.slice(..bytes.len() / 2)
}
