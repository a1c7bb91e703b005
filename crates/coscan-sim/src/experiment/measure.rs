//! The metrics of a run.

use coscan_core::Order;

use super::Run;
use crate::bound;
use crate::metric::Metric;
use crate::outcome::{QueryOutcome, average};

impl Run {
    /// A metric of the whole run; `None` if it does not exist, such as the bytes read for queries in order where there is
    /// none.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let outcome = &self.outcome;
        let all = self.positions(|_| true);
        let value = match metric {
            Metric::StreamAvg => outcome.stream_avg_s(),
            Metric::Total => seconds(outcome.total_ns),
            Metric::Requests => outcome.requests as f64,
            Metric::PagesRead => outcome.pages_read as f64,
            Metric::BytesToBound => {
                outcome.bytes_read as f64 / self.prepared.bytes_lower_bound.max(1) as f64
            }
            Metric::BytesMin => self.bytes_min()? as f64,
            Metric::BytesToMin => outcome.bytes_read as f64 / self.bytes_min()?.max(1) as f64,
            Metric::CpuUse => outcome.cpu_use(),
            Metric::NormalizedLatencyShort => {
                average(self.shortest(&all).into_iter().map(|query| self.normalized(query)))
            }
            Metric::BytesInOrder => self.bytes_read(&self.of_order(&all, Order::InOrder)?),
            Metric::BytesAnyOrder => self.bytes_read(&self.of_order(&all, Order::Any)?),
            _ => return self.value_among(&all, metric),
        };
        Some(value)
    }

    /// A metric of the queries of one kind, such as `F-10`: the average per query, except for the longest wait and the
    /// bytes, which are those of all of them. `None` if there is no query of that kind, or it cannot be told apart from
    /// others by this metric.
    #[must_use]
    pub fn value_of(&self, label: &str, metric: Metric) -> Option<f64> {
        let of_kind = self.positions(|query| query.label == label);
        if of_kind.is_empty() { None } else { self.value_among(&of_kind, metric) }
    }

    /// The bytes that the best choice of victims would have read for the same chunks, handed out in the same order, see
    /// [`bound::belady_bytes`]; `None` unless every query had its chunks in order, since another choice of victims
    /// would have led to another order.
    #[must_use]
    pub fn bytes_min(&self) -> Option<u64> {
        let workload = &self.prepared.workload;
        let bytes = || bound::belady_bytes(workload, &bound::references(workload, &self.outcome));
        self.outcome.is_in_order().then(bytes)
    }

    fn value_among(&self, queries: &[usize], metric: Metric) -> Option<f64> {
        let outcomes = queries.iter().map(|&query| &self.outcome.queries[query]);
        let normalized = queries.iter().map(|&query| self.normalized(query));
        let value = match metric {
            Metric::NormalizedLatencyAvg => average(normalized),
            Metric::NormalizedLatencyP99 => percentile(99, normalized),
            Metric::LatencyAvg => average(outcomes.map(|query| seconds(query.latency_ns()))),
            Metric::StandaloneAvg => {
                average(queries.iter().map(|&query| seconds(self.prepared.standalone_ns[query])))
            }
            Metric::LongestWait => {
                seconds(outcomes.map(|query| query.longest_wait_ns).max().unwrap_or(0))
            }
            Metric::Requests => average(outcomes.map(|query| query.requests as f64)),
            Metric::BytesRead => self.bytes_read(queries),
            _ => return None,
        };
        Some(value)
    }

    /// The latency of a query as a multiple of its latency alone. A query that takes no time alone counts as one that
    /// takes a nanosecond.
    fn normalized(&self, query: usize) -> f64 {
        let alone_ns = self.prepared.standalone_ns[query].max(1);
        self.outcome.queries[query].latency_ns() as f64 / alone_ns as f64
    }

    /// The bytes read for these queries.
    fn bytes_read(&self, queries: &[usize]) -> f64 {
        queries.iter().map(|&query| self.outcome.queries[query].bytes_read).sum::<u64>() as f64
    }

    /// The queries that ran and pass a test.
    fn positions(&self, test: impl Fn(&QueryOutcome) -> bool) -> Vec<usize> {
        let queries = self.outcome.queries.iter().enumerate();
        let selected = queries.filter(|(_, query)| query.has_run() && test(query));
        selected.map(|(position, _)| position).collect()
    }

    /// The queries of these that asked for this order, if any did.
    fn of_order(&self, queries: &[usize], order: Order) -> Option<Vec<usize>> {
        let orders: Vec<Order> =
            self.prepared.workload.queries().map(|query| query.order).collect();
        let of_order: Vec<_> =
            queries.iter().copied().filter(|&query| orders[query] == order).collect();
        (!of_order.is_empty()).then_some(of_order)
    }

    /// The queries of these that read the fewest rows.
    fn shortest(&self, queries: &[usize]) -> Vec<usize> {
        let rows: Vec<u64> =
            self.prepared.workload.queries().map(|query| query.row_count()).collect();
        let fewest = queries.iter().map(|&query| rows[query]).min();
        queries.iter().copied().filter(|&query| Some(rows[query]) == fewest).collect()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The smallest of the values that this percentage of them does not exceed; 0 if there are none.
fn percentile(percent: usize, values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let of = |count: u32| percentile(99, (1..=count).rev().map(f64::from));
        assert_eq!(
            (of(0), of(1), of(2), of(100), of(101), of(200)),
            (0.0, 1.0, 2.0, 99.0, 100.0, 198.0)
        );
    }
}
