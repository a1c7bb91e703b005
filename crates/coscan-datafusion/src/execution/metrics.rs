//! The metrics of a scan in EXPLAIN ANALYZE.

use std::sync::OnceLock;
use std::time::Duration;

use coscan_runtime::ScanMetrics;
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricValue, Time,
};

/// The names of the counters that say how far a scan is.
pub(crate) const CHUNKS_NEEDED: &str = "chunks_needed";
pub(crate) const CHUNKS_DELIVERED: &str = "chunks_delivered";
pub(crate) const CHUNKS_PRUNED_DYNAMIC_FILTER: &str = "chunks_pruned_dynamic_filter";

/// The metrics of a scan, summed over all executions of the plan.
#[derive(Debug)]
pub(crate) struct ScanCounts {
    pub(crate) chunks_needed: Count,
    pub(crate) chunks_pruned: Count,
    pub(crate) chunks_pruned_dynamic_filter: Count,
    chunks_delivered: Count,
    chunks_found_in_pool: Count,
    bytes_read: Count,
    bytes_reused: Count,
    /// Created with the first byte, since few servers have peers.
    bytes_from_peers: OnceLock<Count>,
    metrics: ExecutionPlanMetricsSet,
    slices_decoded: Count,
    slices_reused: Count,
    time_waiting: Time,
    time_decoding: Time,
    time_reading: Time,
}

impl ScanCounts {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).global_counter(name);
        let time = |name: &'static str| {
            let time = Time::new();
            let value = MetricValue::Time { name: name.into(), time: time.clone() };
            MetricBuilder::new(metrics).build(value);
            time
        };
        Self {
            chunks_needed: count(CHUNKS_NEEDED),
            chunks_pruned: count("chunks_pruned"),
            chunks_pruned_dynamic_filter: count(CHUNKS_PRUNED_DYNAMIC_FILTER),
            chunks_delivered: count(CHUNKS_DELIVERED),
            chunks_found_in_pool: count("chunks_found_in_pool"),
            bytes_read: count("bytes_read"),
            bytes_reused: count("bytes_reused"),
            bytes_from_peers: OnceLock::new(),
            metrics: metrics.clone(),
            slices_decoded: count("slices_decoded"),
            slices_reused: count("slices_reused"),
            time_waiting: time("time_waiting"),
            time_decoding: time("time_decoding"),
            time_reading: time("time_reading"),
        }
    }

    /// Adds the difference between two states of a scan's metrics.
    pub(crate) fn add(&self, before: &ScanMetrics, now: &ScanMetrics) {
        let (chunks_before, chunks) = (&before.chunks, &now.chunks);
        add(&self.chunks_delivered, chunks_before.chunks_delivered, chunks.chunks_delivered);
        add(&self.chunks_found_in_pool, chunks_before.chunks_found, chunks.chunks_found);
        add(&self.bytes_read, chunks_before.bytes_read, chunks.bytes_read);
        add(&self.bytes_reused, chunks_before.bytes_reused, chunks.bytes_reused);
        if now.bytes_from_peers > before.bytes_from_peers {
            let count = || MetricBuilder::new(&self.metrics).global_counter("bytes_from_peers");
            let count = self.bytes_from_peers.get_or_init(count);
            add(count, before.bytes_from_peers, now.bytes_from_peers);
        }
        add(&self.slices_decoded, before.slices_decoded, now.slices_decoded);
        add(&self.slices_reused, before.slices_reused, now.slices_reused);
        add_time(&self.time_waiting, before.wait, now.wait);
        add_time(&self.time_decoding, before.decode, now.decode);
        add_time(&self.time_reading, before.read, now.read);
    }
}

fn add(count: &Count, before: u64, now: u64) {
    count.add(usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX));
}

fn add_time(time: &Time, before: Duration, now: Duration) {
    // A time of zero would be counted as a nanosecond.
    let passed = now.saturating_sub(before);
    if !passed.is_zero() {
        time.add_duration(passed);
    }
}
