//! Results for programs.

use serde::Serialize;

use crate::experiment::Run;
use crate::metric::Metric;

use super::results::Results;

/// What came of an experiment.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    runs: Vec<Record<'a>>,
}

/// What came of a run.
#[derive(Serialize)]
struct Record<'a> {
    /// Only where there are several.
    #[serde(skip_serializing_if = "str::is_empty")]
    case: &'a str,
    policy: &'a str,
    seed: u64,
    stream_avg_s: f64,
    normalized_latency_avg: f64,
    normalized_latency_short: f64,
    total_s: f64,
    io_requests: u64,
    bytes_read: u64,
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
    Record {
        case: &run.prepared.case,
        policy: &run.outcome.policy,
        seed: run.prepared.seed,
        stream_avg_s: run.value(Metric::StreamAvg),
        normalized_latency_avg: run.value(Metric::NormalizedLatencyAvg),
        normalized_latency_short: run.value(Metric::NormalizedLatencyShort),
        total_s: run.value(Metric::Total),
        io_requests: run.outcome.requests,
        bytes_read: run.outcome.bytes_read,
        bytes_compulsory: run.prepared.bytes_compulsory,
        bytes_lower_bound: run.prepared.bytes_lower_bound,
        cpu_use: run.value(Metric::CpuUse),
    }
}
