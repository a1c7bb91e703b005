//! The figures of a run, and the comparison of its answers with those of another engine.

use std::collections::BTreeMap;
use std::time::Duration;

use coscan_core::SHARING_LEVELS;
use serde::{Deserialize, Serialize};

use super::SharingMoment;
use super::streams::Run;
use crate::answers::{Difference, compare_ordered_answers};
use crate::metrics::average;

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

impl Run {
    pub(super) fn report(
        &self,
        engine: &str,
        scale_factor: f64,
        answers_equal: bool,
    ) -> ThroughputReport {
        let total_s = self.total.as_secs_f64();
        let queries = self.queries.iter().map(|answered| ThroughputQueryReport {
            query: answered.query.number,
            stream: answered.stream,
            latency_s: answered.latency.as_secs_f64(),
        });
        ThroughputReport {
            engine: engine.to_owned(),
            total_s,
            stream_avg_s: average(self.stream_times.iter().map(Duration::as_secs_f64)),
            throughput_at_size: self.queries.len() as f64 * 3600.0 / total_s * scale_factor,
            bytes_read: self.io.bytes,
            io_requests: self.io.requests,
            cpu_s: self.cpu.as_secs_f64(),
            memory_peak_bytes: self.memory_peak_bytes,
            answers_equal,
            queries: queries.collect(),
            sharing: self.sharing.clone(),
        }
    }
}

/// Compares the answers of two runs of the same streams.
///
/// # Errors
/// The first difference.
pub(super) fn compare(actual: &Run, expected: &Run) -> Result<(), Difference> {
    for (actual, expected) in actual.queries.iter().zip(&expected.queries) {
        let query = &expected.query;
        let (expected, actual) = (&expected.answer, &actual.answer);
        compare_ordered_answers(&query.sql, &query.order_columns, expected, actual)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::runner::IoCount;
    use crate::throughput::ThroughputQuery;
    use crate::throughput::streams::Answered;

    /// Two streams of one query each.
    fn run(latencies_s: [u64; 2], rows: [[i64; 2]; 2]) -> Run {
        let answered = |(stream, (latency_s, rows)): (usize, (u64, [i64; 2]))| {
            let column: ArrayRef = Arc::new(Int64Array::from(rows.to_vec()));
            let order_columns = vec!["n"];
            Answered {
                query: ThroughputQuery { number: 4, sql: "SELECT n".to_owned(), order_columns },
                stream,
                latency: Duration::from_secs(latency_s),
                answer: vec![RecordBatch::try_from_iter([("n", column)]).expect("one column")],
            }
        };
        Run {
            total: Duration::from_secs(8),
            stream_times: latencies_s.map(Duration::from_secs).to_vec(),
            io: IoCount { bytes: 10, requests: 2 },
            cpu: Duration::from_secs(9),
            memory_peak_bytes: None,
            sharing: [[10, 0, 0, 0, 4], [0, 6, 0, 0, 0]]
                .map(|bytes| SharingMoment { at_s: 1.0, bytes })
                .to_vec(),
            queries: latencies_s.into_iter().zip(rows).enumerate().map(answered).collect(),
        }
    }

    #[test]
    fn throughput_counts_queries_per_hour_and_scale() {
        let report = run([8, 4], [[1, 2], [3, 4]]).report("e", 0.5, true);
        assert_eq!((report.total_s, report.stream_avg_s), (8.0, 6.0));
        assert_eq!(report.throughput_at_size, 2.0 * 3600.0 / 8.0 * 0.5);
        assert_eq!(report.latency_avg_s(), BTreeMap::from([(4, 6.0)]));
        assert_eq!(report.sharing_avg(), Some([5.0, 3.0, 0.0, 0.0, 2.0]));
    }

    #[test]
    fn rows_and_their_order_are_compared() {
        let expected = run([1, 1], [[1, 2], [3, 4]]);
        assert_eq!(compare(&run([2, 3], [[1, 2], [3, 4]]), &expected), Ok(()));
        assert!(compare(&run([1, 1], [[1, 2], [4, 3]]), &expected).is_err(), "another order");
        assert!(compare(&run([1, 1], [[1, 2], [3, 5]]), &expected).is_err(), "another row");
    }
}
