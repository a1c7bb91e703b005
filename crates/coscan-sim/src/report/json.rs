//! Results for programs.

use serde::Serialize;

use crate::experiment::Run;
use crate::metric::Metric;

use super::results::Results;

/// The results of an experiment.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    runs: Vec<Record<'a>>,
}

/// The results of a run.
#[derive(Serialize)]
struct Record<'a> {
    /// The case, only if there are several.
    #[serde(skip_serializing_if = "str::is_empty")]
    case: &'a str,
    policy: &'a str,
    seed: u64,
    stream_avg_s: f64,
    normalized_latency_avg: f64,
    normalized_latency_short: f64,
    normalized_latency_p99: f64,
    total_s: f64,
    io_requests: u64,
    bytes_read: u64,
    /// Only if there are such queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_any_order: Option<u64>,
    /// Only if all queries got their chunks in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_min: Option<u64>,
    bytes_compulsory: u64,
    bytes_lower_bound: u64,
    cpu_use: f64,
}

/// The runs as JSON: `{experiment, runs: [{policy, seed, stream_avg_s, …}]}`, with `case` in the runs of a sweep. Times
/// are in seconds, `cpu_use` is the part of the processor time that was used.
#[must_use]
pub fn json(results: &Results<'_>) -> String {
    let runs = results.runs().iter().map(record).collect();
    let document = Document { experiment: &results.spec().name, runs };
    serde_json::to_string_pretty(&document).expect("numbers and texts") + "\n"
}

fn record(run: &Run) -> Record<'_> {
    let value = |metric| run.value(metric).unwrap_or(0.0);
    let bytes = |metric| run.value(metric).map(|bytes| bytes as u64);
    Record {
        case: &run.prepared.case,
        policy: &run.outcome.policy,
        seed: run.prepared.seed,
        stream_avg_s: value(Metric::StreamAvg),
        normalized_latency_avg: value(Metric::NormalizedLatencyAvg),
        normalized_latency_short: value(Metric::NormalizedLatencyShort),
        normalized_latency_p99: value(Metric::NormalizedLatencyP99),
        total_s: value(Metric::Total),
        io_requests: run.outcome.requests,
        bytes_read: run.outcome.bytes_read,
        bytes_in_order: bytes(Metric::BytesInOrder),
        bytes_any_order: bytes(Metric::BytesAnyOrder),
        bytes_min: run.bytes_min(),
        bytes_compulsory: run.prepared.bytes_compulsory,
        bytes_lower_bound: run.prepared.bytes_lower_bound,
        cpu_use: value(Metric::CpuUse),
    }
}
