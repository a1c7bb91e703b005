//! What is measured of a run.

use super::Run;
use crate::metric::Metric;

impl Run {
    /// What was measured of the whole run.
    #[must_use]
    pub fn value(&self, metric: Metric) -> f64 {
        let all = || 0..self.outcome.queries.len();
        match metric {
            Metric::StreamAvg => self.outcome.stream_avg_s(),
            Metric::NormalizedLatencyShort => self.average(self.shortest(), |q| self.normalized(q)),
            Metric::Total => seconds(self.outcome.total_ns),
            Metric::Requests => self.outcome.requests as f64,
            Metric::BytesRead => self.outcome.bytes_read as f64,
            Metric::BytesToBound => {
                self.outcome.bytes_read as f64 / self.prepared.bytes_lower_bound.max(1) as f64
            }
            Metric::CpuUse => self.outcome.cpu_use(),
            Metric::NormalizedLatencyAvg
            | Metric::LatencyAvg
            | Metric::StandaloneAvg
            | Metric::LongestWait => {
                self.value_among(all(), metric).expect("defined for any set of queries")
            }
        }
    }

    /// What was measured of the queries of one kind, such as `F-10`: an average a query, but for the longest wait.
    /// `None` if there is no query of that kind, or it cannot be told apart from others by this metric.
    #[must_use]
    pub fn value_of(&self, label: &str, metric: Metric) -> Option<f64> {
        let queries = self.outcome.queries.iter().enumerate();
        let of_kind = queries.filter(|(_, query)| query.label == label);
        let of_kind: Vec<_> = of_kind.map(|(position, _)| position).collect();
        if of_kind.is_empty() { None } else { self.value_among(of_kind, metric) }
    }

    fn value_among(&self, queries: impl IntoIterator<Item = usize>, metric: Metric) -> Option<f64> {
        let outcome = |query: usize| &self.outcome.queries[query];
        let value = match metric {
            Metric::NormalizedLatencyAvg => self.average(queries, |query| self.normalized(query)),
            Metric::LatencyAvg => {
                self.average(queries, |query| seconds(outcome(query).latency_ns()))
            }
            Metric::StandaloneAvg => {
                self.average(queries, |query| seconds(self.prepared.standalone_ns[query]))
            }
            Metric::LongestWait => {
                let waits = queries.into_iter().map(|query| outcome(query).longest_wait_ns);
                seconds(waits.max().unwrap_or(0))
            }
            Metric::Requests => self.average(queries, |query| outcome(query).requests as f64),
            _ => return None,
        };
        Some(value)
    }

    fn average(
        &self,
        queries: impl IntoIterator<Item = usize>,
        value: impl Fn(usize) -> f64,
    ) -> f64 {
        let values: Vec<_> = queries.into_iter().map(value).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }

    /// A query that takes no time alone counts as one that takes a nanosecond.
    fn normalized(&self, query: usize) -> f64 {
        let alone_ns = self.prepared.standalone_ns[query].max(1);
        self.outcome.queries[query].latency_ns() as f64 / alone_ns as f64
    }

    /// The queries that read the fewest rows.
    fn shortest(&self) -> Vec<usize> {
        let queries = self.prepared.workload.streams.iter().flat_map(|stream| &stream.queries);
        let rows =
            |ranges: &[std::ops::Range<u64>]| ranges.iter().map(|it| it.end - it.start).sum();
        let rows: Vec<u64> = queries.map(|query| rows(&query.rows)).collect();
        let fewest = rows.iter().min().copied().unwrap_or(0);
        (0..rows.len()).filter(|&query| rows[query] == fewest).collect()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
