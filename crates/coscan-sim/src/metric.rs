//! The metrics of runs, by name: in results, in published figures and in orders of policies.

use std::fmt;
use std::str::FromStr;

/// A metric of a run, or of the queries of one kind in it. The name ends in the unit. Without a unit it is a count, a
/// number of bytes or a ratio.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    /// Average time of a stream, from its start to the end of its last query, in seconds [CS07 §5.2].
    StreamAvg,
    /// Average of the queries' latencies as multiples of their latencies alone, with an empty pool [CS07 §5.2].
    NormalizedLatencyAvg,
    /// The average normalized latency of the queries that read the fewest rows.
    NormalizedLatencyShort,
    /// The normalized latency that 99 percent of the queries do not exceed.
    NormalizedLatencyP99,
    /// Average latency of a query in seconds.
    LatencyAvg,
    /// Average latency of a query alone, with an empty pool, in seconds.
    StandaloneAvg,
    /// The longest time that a worker waited for a chunk, in seconds.
    LongestWait,
    /// Time from the start of the first stream to the end of the last one, in seconds.
    Total,
    /// Loads: the papers' chunk-sized I/O requests.
    Requests,
    /// Pages read, which the papers count as I/O requests of column layouts.
    PagesRead,
    /// Bytes read.
    BytesRead,
    /// Bytes read for queries that asked for order.
    BytesInOrder,
    /// Bytes read for queries that did not ask for order.
    BytesAnyOrder,
    /// Bytes that the best choice of victims would have read, if all queries got their chunks in order.
    BytesMin,
    /// Bytes read as a multiple of [`Metric::BytesMin`].
    BytesToMin,
    /// Bytes read as a multiple of the lower bound for any schedule.
    BytesToBound,
    /// The part of the processor time of all cores that was used.
    CpuUse,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 17] = [
        Metric::StreamAvg,
        Metric::NormalizedLatencyAvg,
        Metric::NormalizedLatencyShort,
        Metric::NormalizedLatencyP99,
        Metric::LatencyAvg,
        Metric::StandaloneAvg,
        Metric::LongestWait,
        Metric::Total,
        Metric::Requests,
        Metric::PagesRead,
        Metric::BytesRead,
        Metric::BytesInOrder,
        Metric::BytesAnyOrder,
        Metric::BytesMin,
        Metric::BytesToMin,
        Metric::BytesToBound,
        Metric::CpuUse,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::StreamAvg => "stream_avg_s",
            Metric::NormalizedLatencyAvg => "normalized_latency_avg",
            Metric::NormalizedLatencyShort => "normalized_latency_short",
            Metric::NormalizedLatencyP99 => "normalized_latency_p99",
            Metric::LatencyAvg => "latency_avg_s",
            Metric::StandaloneAvg => "standalone_avg_s",
            Metric::LongestWait => "longest_wait_s",
            Metric::Total => "total_s",
            Metric::Requests => "io_requests",
            Metric::PagesRead => "pages_read",
            Metric::BytesRead => "bytes_read",
            Metric::BytesInOrder => "bytes_in_order",
            Metric::BytesAnyOrder => "bytes_any_order",
            Metric::BytesMin => "bytes_min",
            Metric::BytesToMin => "bytes_to_min",
            Metric::BytesToBound => "bytes_to_bound",
            Metric::CpuUse => "cpu_use",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no metric has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("nothing is measured under the name `{name}`; choose from {}", names())]
pub struct UnknownMetric {
    name: String,
}

fn names() -> String {
    Metric::ALL.map(Metric::name).join(", ")
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        let found = Self::ALL.into_iter().find(|metric| metric.name() == name);
        found.ok_or_else(|| UnknownMetric { name: name.to_owned() })
    }
}
