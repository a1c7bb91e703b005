//! Counts the reads of a store.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, GetResult, ObjectStore, Result};
use tokio::time::Instant;

use super::delegate::object_store_by_reads;
use super::ranges::{cut, merge};

/// Counts of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCounts {
    /// Requests, each for one contiguous range of one file.
    pub requests: u64,
    /// Bytes in those requests.
    pub bytes: u64,
}

/// One request, for pictures of I/O over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRecord {
    /// The time of the request, since the metrics were made or last reset.
    pub when: Duration,
    /// The file.
    pub path: Path,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// The counts of one or more [`MeteredStore`]s, shared by [`Arc`].
#[derive(Debug)]
pub struct StoreMetrics {
    keeps_log: bool,
    state: Mutex<MetricsState>,
}

#[derive(Debug)]
struct MetricsState {
    started: Instant,
    counts: ReadCounts,
    log: Vec<ReadRecord>,
}

impl StoreMetrics {
    /// Metrics with counts only.
    pub fn new() -> Arc<Self> {
        Self::build(false)
    }

    /// Metrics with counts, and a record per request until [`take_log`](Self::take_log) takes them. The log grows
    /// without limit, so it is for measurements, not for servers.
    pub fn with_log() -> Arc<Self> {
        Self::build(true)
    }

    /// Requests and bytes since the start or the last [`reset`](Self::reset).
    pub fn snapshot(&self) -> ReadCounts {
        self.state().counts
    }

    /// Resets the metrics: counts at zero, the log empty, the clock at zero.
    pub fn reset(&self) {
        *self.state() = MetricsState::new();
    }

    /// Takes the records kept so far, in the order in which the requests were made. The result is empty if no log is
    /// kept.
    pub fn take_log(&self) -> Vec<ReadRecord> {
        let mut log = std::mem::take(&mut self.state().log);
        // Records are entered when a request is answered.
        log.sort_by_key(|record| record.when);
        log
    }

    fn build(keeps_log: bool) -> Arc<Self> {
        Arc::new(Self { keeps_log, state: Mutex::new(MetricsState::new()) })
    }

    fn state(&self) -> MutexGuard<'_, MetricsState> {
        // Counts are consistent after each statement, so a panic elsewhere does not spoil them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, made: Instant, path: &Path, range: &Range<u64>) {
        let bytes = range.end - range.start;
        let mut state = self.state();
        state.counts.requests += 1;
        state.counts.bytes += bytes;
        if self.keeps_log {
            let when = made.saturating_duration_since(state.started);
            state.log.push(ReadRecord { when, path: path.clone(), offset: range.start, bytes });
        }
    }
}

impl MetricsState {
    fn new() -> Self {
        Self { started: Instant::now(), counts: ReadCounts::default(), log: Vec::new() }
    }
}

/// Any store, with its reads counted in [`StoreMetrics`].
///
/// - A request is one contiguous range asked of the device, counted with the bytes asked for.
/// - `get_ranges` joins ranges up to [`COALESCE_GAP_BYTES`](super::COALESCE_GAP_BYTES) apart, counts the result, and
///   asks the wrapped store for exactly that: counts are of bytes read, gaps included.
/// - Failed requests, requests for metadata and listings are not counted.
///
/// The clock is tokio's: the machine's, unless a test pauses it. Clones share the metrics.
#[derive(Debug, Clone)]
pub struct MeteredStore {
    inner: Arc<dyn ObjectStore>,
    metrics: Arc<StoreMetrics>,
}

impl std::fmt::Display for MeteredStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "MeteredStore({})", self.inner)
    }
}

impl MeteredStore {
    /// Counts the reads from `inner` in `metrics`.
    pub fn new(inner: Arc<dyn ObjectStore>, metrics: Arc<StoreMetrics>) -> Self {
        Self { inner, metrics }
    }

    /// The counts of this store.
    pub fn metrics(&self) -> Arc<StoreMetrics> {
        Arc::clone(&self.metrics)
    }

    fn inner(&self) -> &dyn ObjectStore {
        self.inner.as_ref()
    }

    async fn read(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let made = Instant::now();
        let is_head = options.head;
        let result = self.inner.get_opts(location, options).await?;
        if !is_head {
            self.metrics.record(made, location, &result.range);
        }
        Ok(result)
    }

    async fn read_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let made = Instant::now();
        let requests = merge(ranges);
        let answers = self.inner.get_ranges(location, &requests).await?;
        for request in &requests {
            self.metrics.record(made, location, request);
        }
        Ok(cut(ranges, &requests, &answers))
    }
}

object_store_by_reads!(MeteredStore);
