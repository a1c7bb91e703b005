//! A slow disk or a distant object store, reproduced on any machine.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join;
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetResult, GetResultPayload, ObjectStore, Result};
use tokio::time::{Instant, sleep_until};

use super::delegate::object_store_by_reads;
use super::ranges::{cut, merge};

/// The largest delay of a timer that is made up for. Timers wake up a millisecond or two late. A reader with one
/// request at a time would never reach the bandwidth, so its next request counts as that much earlier. Beyond this
/// limit the reader was busy with other work.
const LATE_MAX: Duration = Duration::from_millis(5);

/// The longest wait: longer ones would overflow the clock.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The performance of the reproduced device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Bytes that the device moves per second, for all readers together; `None` is no limit. Zero counts as one.
    pub bytes_per_second: Option<u64>,
    /// Time from a request to its answer, on top of the time to move the bytes. The latencies of
    /// requests that wait at the same time overlap.
    pub latency: Duration,
}

/// Any store behind one device with [`Limits`].
///
/// Requests are served first come, first served: each takes the device for its bytes divided by the bandwidth, and is
/// answered one latency later. The wrapped store reads meanwhile, so its own time is hidden as long as it is faster.
/// A cancelled request has still used the device.
///
/// - The bytes of a range are charged as a whole when it is asked for.
/// - `get_ranges` first joins ranges up to [`COALESCE_GAP_BYTES`](super::COALESCE_GAP_BYTES) apart; each is one
///   request.
/// - Requests for metadata and failed requests pay the latency only. Writing and listing are free.
///
/// The clock is tokio's; with a paused clock all durations are exact to the millisecond. Clones
/// share the device.
#[derive(Debug, Clone)]
pub struct LimitedStore {
    inner: Arc<dyn ObjectStore>,
    limits: Limits,
    device: Arc<Device>,
}

impl std::fmt::Display for LimitedStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "LimitedStore({})", self.inner)
    }
}

impl LimitedStore {
    /// Puts `inner` behind a device with `limits`.
    pub fn new(inner: Arc<dyn ObjectStore>, limits: Limits) -> Self {
        let device = Arc::default();
        Self { inner, limits, device }
    }

    /// The limits of the device.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn inner(&self) -> &dyn ObjectStore {
        self.inner.as_ref()
    }

    async fn read(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let answer_at = Instant::now() + self.limits.latency.min(WAIT_MAX);
        let is_head = options.head;
        let in_one_piece = options.range.is_some();
        match self.inner.get_opts(location, options).await {
            Ok(result) if !is_head => {
                let bytes = result.range.end - result.range.start;
                let ready_at = self.device.reserve(bytes, &self.limits);
                Ok(hold_until(Arc::clone(&self.device), ready_at, result, in_one_piece))
            }
            other => {
                sleep_until(answer_at).await;
                other
            }
        }
    }

    async fn read_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let requests = merge(ranges);
        let mut ready_at = Instant::now();
        for request in &requests {
            ready_at = self.device.reserve(request.end - request.start, &self.limits);
        }
        let reading = self.inner.get_ranges(location, &requests);
        let (answers, ()) = join(reading, self.device.wait_until(ready_at)).await;
        Ok(cut(ranges, &requests, &answers?))
    }
}

object_store_by_reads!(LimitedStore);

/// The queue in front of the device.
#[derive(Debug, Default)]
struct Device {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The end of the transfer of all requests so far; `None` before the first request.
    free_at: Option<Instant>,
    /// The delay with which the last reader woke up, as credit for the next request.
    late: Duration,
}

impl Device {
    /// Takes the device for `bytes` bytes. Returns the time of the answer.
    fn reserve(&self, bytes: u64, limits: &Limits) -> Instant {
        let now = Instant::now();
        let mut queue = self.queue();
        let arrived = now.checked_sub(std::mem::take(&mut queue.late)).unwrap_or(now);
        let start = queue.free_at.map_or(now, |free_at| free_at.max(arrived));
        let finish = (start + transfer_time(bytes, limits)).min(now + WAIT_MAX);
        queue.free_at = Some(finish);
        finish + limits.latency.min(WAIT_MAX)
    }

    async fn wait_until(&self, ready_at: Instant) {
        if ready_at > Instant::now() {
            sleep_until(ready_at).await;
            self.queue().late = ready_at.elapsed().min(LATE_MAX);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Two plain values are usable even if another holder panicked.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn transfer_time(bytes: u64, limits: &Limits) -> Duration {
    let Some(bytes_per_second) = limits.bytes_per_second else { return Duration::ZERO };
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
    u64::try_from(nanoseconds).map_or(WAIT_MAX, Duration::from_nanos).min(WAIT_MAX)
}

/// The result with its content held until `ready_at`. Reading starts at once.
fn hold_until(
    device: Arc<Device>,
    ready_at: Instant,
    result: GetResult,
    in_one_piece: bool,
) -> GetResult {
    let meta = result.meta.clone();
    let range = result.range.clone();
    let attributes = result.attributes.clone();
    // A file as payload would be streamed in tiny pieces; a range is read whole.
    let mut content =
        if in_one_piece { stream::once(result.bytes()).boxed() } else { result.into_stream() };
    let held = stream::once(async move {
        let (first, ()) = join(content.next(), device.wait_until(ready_at)).await;
        stream::iter(first).chain(content)
    });
    let payload = GetResultPayload::Stream(held.flatten().boxed());
    GetResult { payload, meta, range, attributes }
}
