//! The measurements of a run of the streams, one [`EngineReport`] per engine, and the figures of CS07
//! Table 2 derived from it.
//!
//! The field names are the JSON that `coscan bench streams --json` writes; see [`write_json`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::workload::{Kind, Percent};

/// The standalone latency of each kind of query with nothing in memory, in seconds.
pub type Standalone = BTreeMap<(Kind, Percent), f64>;

/// The run of one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The time from the start of the first stream to the end of the last, in seconds.
    pub total_s: f64,
    /// The average over the streams of their running time, each from its own start, in seconds:
    /// the system's throughput (CS07 §5.2).
    pub stream_avg_s: f64,
    /// The average over the queries of latency divided by the time alone: the system's latency
    /// (CS07 §5.2).
    pub normalized_latency_avg: f64,
    /// The bytes read from the device.
    pub bytes_read: u64,
    /// The read requests sent to the device.
    pub io_requests: u64,
    /// The processor time of the whole process, in seconds.
    pub cpu_s: f64,
    /// The part of all cores that was used, 0 to 1.
    pub cpu_use: f64,
    /// Whether every answer equals that of the first engine.
    pub answers_equal: bool,
    /// The peak resident memory of the process during the run, in bytes, if known.
    pub memory_peak_bytes: Option<u64>,
    /// All queries, in the order of streams and then of time.
    pub queries: Vec<QueryReport>,
    /// All reads, in the order of time.
    pub reads: Vec<ReadPoint>,
}

/// One query of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryReport {
    /// The kind of the query.
    pub kind: Kind,
    /// The part of the table that it read.
    pub percent: Percent,
    /// The index of its stream.
    pub stream: usize,
    /// The start, in seconds from the start of the run.
    pub start_s: f64,
    /// The time from its start to its last row, in seconds.
    pub latency_s: f64,
    /// The time that it takes alone with nothing in memory, in seconds.
    pub standalone_s: f64,
}

impl QueryReport {
    /// The latency divided by the time alone.
    pub fn normalized_latency(&self) -> f64 {
        self.latency_s / self.standalone_s
    }
}

/// One read from the device: a dot in CS07 Figure 4.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReadPoint {
    /// The time in seconds from the start of the run.
    pub t_s: f64,
    /// The position in the table, from 0 (its first byte) to 1 (its end).
    pub position: f64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The queries of one kind and range on one engine, which are a cell of the lower half of CS07 Table 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindReport {
    /// The number of queries.
    pub count: usize,
    /// The average time alone with nothing in memory, in seconds.
    pub standalone_s: f64,
    /// The average latency, in seconds.
    pub latency_avg_s: f64,
    /// The standard deviation of the latencies (of all queries, not of a sample), in seconds.
    pub latency_stddev_s: f64,
    /// The 95th percentile of the latencies, in seconds.
    pub latency_p95_s: f64,
    /// The 99th percentile of the latencies, in seconds.
    pub latency_p99_s: f64,
    /// The average of the normalized latencies.
    pub normalized_latency_avg: f64,
    /// The 99th percentile of the normalized latencies.
    pub normalized_latency_p99: f64,
}

impl EngineReport {
    /// The aggregated queries of each kind and range, F-01 first.
    pub fn kinds(&self) -> BTreeMap<(Kind, Percent), KindReport> {
        let mut groups: BTreeMap<_, Vec<&QueryReport>> = BTreeMap::new();
        for query in &self.queries {
            groups.entry((query.kind, query.percent)).or_default().push(query);
        }
        groups.into_iter().map(|(key, queries)| (key, KindReport::of(&queries))).collect()
    }

    /// The average latency of the queries, in seconds, which is a point of CS07 Figure 7.
    pub fn query_avg_s(&self) -> f64 {
        average(self.queries.iter().map(|query| query.latency_s))
    }
}

impl KindReport {
    /// Aggregates queries.
    pub fn of(queries: &[&QueryReport]) -> Self {
        let latencies: Vec<_> = queries.iter().map(|query| query.latency_s).collect();
        let normalized: Vec<_> = queries.iter().map(|query| query.normalized_latency()).collect();
        let latency_avg_s = average(latencies.iter().copied());
        let variance = average(latencies.iter().map(|latency| (latency - latency_avg_s).powi(2)));
        Self {
            count: queries.len(),
            standalone_s: average(queries.iter().map(|query| query.standalone_s)),
            latency_avg_s,
            latency_stddev_s: variance.sqrt(),
            latency_p95_s: percentile(&latencies, 95),
            latency_p99_s: percentile(&latencies, 99),
            normalized_latency_avg: average(normalized.iter().copied()),
            normalized_latency_p99: percentile(&normalized, 99),
        }
    }
}

/// The smallest of `values` that at least `percent` of a hundred values do not exceed, in their unit, or 0 without
/// values.
#[must_use]
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The [`percentile`] of 50, or 0 without values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    percentile(&values.into_iter().collect::<Vec<_>>(), 50)
}

/// The arithmetic mean, or zero without values.
pub(crate) fn average(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The reports of a benchmark.
#[derive(Debug)]
pub struct Compared<R> {
    /// One report per engine, in the requested order.
    pub reports: Vec<R>,
    /// The first difference of each engine from the first one, and what else went wrong.
    pub differences: Vec<String>,
}

/// Writes reports as a JSON array with one object each.
///
/// # Errors
/// If the file cannot be written.
pub fn write_json<T: Serialize>(path: &Path, reports: &[T]) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(reports)?;
    text.push('\n');
    fs::write(path, text)
}
