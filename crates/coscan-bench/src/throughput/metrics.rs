//! The figures of a run.

use std::collections::BTreeMap;

use coscan_core::SHARING_LEVELS;
use serde::{Deserialize, Serialize};

use super::{SharingMoment, ThroughputQuery};
use crate::metrics::average;
use crate::runner::Run;

/// The figures of one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThroughputReport {
    /// The name of the engine or policy.
    pub engine: String,
    /// The time from the start of the streams to the end of the last one, in seconds.
    pub total_s: f64,
    /// The average time of a stream, in seconds.
    pub stream_avg_s: f64,
    /// The queries per hour of the total time, times the scale factor. This is Throughput@Size of TPC-H (section 5.4),
    /// but without its changes of rows, so it is not comparable with published results.
    pub throughput_at_size: f64,
    /// The bytes read from the device.
    pub bytes_read: u64,
    /// The number of requests to the device.
    pub io_requests: u64,
    /// The processor time of the process, in seconds.
    pub cpu_s: f64,
    /// The peak resident memory of the process during the run, in bytes, if known. It includes the answers of earlier
    /// engines.
    pub memory_peak_bytes: Option<u64>,
    /// Whether every answer equals that of the first engine.
    pub answers_equal: bool,
    /// All queries, in the order of streams and then of time.
    pub queries: Vec<ThroughputQueryReport>,
    /// The sharing potential over time. Empty for an engine that does not know its scans.
    pub sharing: Vec<SharingMoment>,
}

/// A query of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThroughputQueryReport {
    /// The number of the query, from 1 to 22.
    pub query: u8,
    /// The index of its stream.
    pub stream: usize,
    /// The time from its start to its last row, in seconds.
    pub latency_s: f64,
}

impl ThroughputReport {
    pub(super) fn new(
        run: &Run<ThroughputQuery>,
        sharing: Vec<SharingMoment>,
        scale_factor: f64,
        answers_equal: bool,
    ) -> Self {
        let total_s = run.total.as_secs_f64();
        let queries = run.queries.iter().map(|answered| ThroughputQueryReport {
            query: answered.query.number,
            stream: answered.stream,
            latency_s: answered.latency.as_secs_f64(),
        });
        Self {
            engine: run.engine.clone(),
            total_s,
            stream_avg_s: run.stream_avg_s(),
            throughput_at_size: run.queries.len() as f64 * 3600.0 / total_s * scale_factor,
            bytes_read: run.io.bytes,
            io_requests: run.io.requests,
            cpu_s: run.cpu.as_secs_f64(),
            memory_peak_bytes: run.memory_peak_bytes,
            answers_equal,
            queries: queries.collect(),
            sharing,
        }
    }

    /// The average latency of each query over the streams, in seconds.
    pub fn latency_avg_s(&self) -> BTreeMap<u8, f64> {
        let mut latencies: BTreeMap<u8, Vec<f64>> = BTreeMap::new();
        for query in &self.queries {
            latencies.entry(query.query).or_default().push(query.latency_s);
        }
        let averages = latencies.into_iter();
        averages.map(|(query, latencies)| (query, average(latencies.into_iter()))).collect()
    }

    /// The average sharing potential, in bytes by the number of scans, or `None` for an engine that does not know its
    /// scans.
    pub fn sharing_avg(&self) -> Option<[f64; SHARING_LEVELS]> {
        let at = |level: usize| self.sharing.iter().map(move |moment| moment.bytes[level] as f64);
        (!self.sharing.is_empty()).then(|| std::array::from_fn(|level| average(at(level))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::test_run;

    /// Two streams of one query each.
    fn run(latencies_ms: [u64; 2], rows: [[i64; 2]; 2]) -> Run<ThroughputQuery> {
        let queries = latencies_ms.into_iter().zip(rows).map(|(latency_ms, rows)| {
            let sql = "SELECT n".to_owned();
            let query = ThroughputQuery { number: 4, sql, order_columns: vec!["n"] };
            (query, latency_ms, rows.to_vec())
        });
        test_run(8_000, queries)
    }

    #[test]
    fn throughput_counts_queries_per_hour_and_scale() {
        let sharing = [[10, 0, 0, 0, 4], [0, 6, 0, 0, 0]];
        let sharing = sharing.map(|bytes| SharingMoment { at_s: 1.0, bytes }).to_vec();
        let run = run([8_000, 4_000], [[1, 2], [3, 4]]);
        let report = ThroughputReport::new(&run, sharing, 0.5, true);
        assert_eq!((report.total_s, report.stream_avg_s), (8.0, 6.0));
        assert_eq!(report.throughput_at_size, 2.0 * 3600.0 / 8.0 * 0.5);
        assert_eq!(report.latency_avg_s(), BTreeMap::from([(4, 6.0)]));
        assert_eq!(report.sharing_avg(), Some([5.0, 3.0, 0.0, 0.0, 2.0]));
    }

    #[test]
    fn rows_and_their_order_are_compared() {
        let expected = run([1, 1], [[1, 2], [3, 4]]);
        assert_eq!(run([2, 3], [[1, 2], [3, 4]]).compare(&expected), Ok(()));
        assert!(run([1, 1], [[1, 2], [4, 3]]).compare(&expected).is_err(), "another order");
        assert!(run([1, 1], [[1, 2], [3, 5]]).compare(&expected).is_err(), "another row");
    }
}
