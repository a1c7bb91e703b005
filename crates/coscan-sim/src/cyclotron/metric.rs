//! The metrics of a run.

use serde::Deserialize;

use super::outcome::CyclotronOutcome;
use super::setup::Cyclotron;

/// A metric of a run of a ring; in files in snake case: `response_s`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CyclotronMetric {
    /// Seconds of a query, on average.
    ResponseS,
    /// Seconds of a query, on average, for each gigabyte that any query touches.
    ResponseSPerGb,
    /// Queries per second.
    Throughput,
    /// Queries per second and node.
    ThroughputPerNode,
    /// Gigabytes per second of the fastest link between neighbours, while it has something to carry.
    FastestLinkGb,
    /// Gigabytes per second of the slowest link between neighbours, while it has something to carry.
    SlowestLinkGb,
    /// Seconds of a query at the nodes at the edges of switches, divided by those of the nodes next to them.
    EdgeToNeighbours,
    /// 1 if queries blocked each other, else 0.
    Blocked,
    /// The highest threshold of a node.
    Threshold,
    /// Times that a fragment was read, on average.
    ReadsPerFragment,
    /// Links that a fragment passed for each time that it was taken.
    HopsPerTake,
    /// Messages without fragments for each time that a fragment was taken.
    MessagesPerTake,
}

impl CyclotronMetric {
    /// All metrics.
    pub const ALL: [Self; 12] = [
        Self::ResponseS,
        Self::ResponseSPerGb,
        Self::Throughput,
        Self::ThroughputPerNode,
        Self::FastestLinkGb,
        Self::SlowestLinkGb,
        Self::EdgeToNeighbours,
        Self::Blocked,
        Self::Threshold,
        Self::ReadsPerFragment,
        Self::HopsPerTake,
        Self::MessagesPerTake,
    ];

    /// The name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::ResponseS => "response s",
            Self::ResponseSPerGb => "response s/GB",
            Self::Throughput => "queries/s",
            Self::ThroughputPerNode => "queries/s a node",
            Self::FastestLinkGb => "fastest link GB/s",
            Self::SlowestLinkGb => "slowest link GB/s",
            Self::EdgeToNeighbours => "edge ÷ next",
            Self::Blocked => "blocked",
            Self::Threshold => "LOIT",
            Self::ReadsPerFragment => "reads ÷ fragment",
            Self::HopsPerTake => "hops ÷ take",
            Self::MessagesPerTake => "messages ÷ take",
        }
    }

    /// The value of the metric in a run. A run in which queries blocked each other has no times.
    #[must_use]
    pub fn value(self, setup: &Cyclotron, run: &CyclotronOutcome) -> Option<f64> {
        let links = run.bytes_per_second.iter().map(|rate| rate / 1e9);
        let hot_set_gb = setup.hot_set_bytes() as f64 / 1e9;
        let value = match self {
            Self::Blocked => f64::from(u8::from(run.blocked.is_some())),
            Self::Threshold => run.threshold_max,
            _ if run.blocked.is_some() => return None,
            Self::ResponseS => run.response_s(None),
            Self::ResponseSPerGb => run.response_s(None) / hot_set_gb,
            Self::Throughput => run.queries_per_second(),
            Self::ThroughputPerNode => run.queries_per_second() / setup.nodes() as f64,
            Self::FastestLinkGb => links.fold(0.0, f64::max),
            Self::SlowestLinkGb => links.fold(f64::INFINITY, f64::min),
            Self::EdgeToNeighbours => edge_to_neighbours(setup, run),
            Self::ReadsPerFragment => run.reads as f64 / setup.fragments() as f64,
            Self::HopsPerTake => run.hops as f64 / run.taken as f64,
            Self::MessagesPerTake => run.messages as f64 / run.taken as f64,
        };
        value.is_finite().then_some(value)
    }
}

fn edge_to_neighbours(setup: &Cyclotron, run: &CyclotronOutcome) -> f64 {
    let nodes = setup.nodes();
    let (mut edges, mut next, mut end) = (0.0, 0.0, 0);
    for at_switch in &setup.switches {
        end += at_switch;
        // The last node of one switch and the first of the next; beside them the last but one and
        // the second.
        edges += run.response_s(Some(end - 1)) + run.response_s(Some(end % nodes));
        next += run.response_s(Some(end - 2)) + run.response_s(Some((end + 1) % nodes));
    }
    edges / next
}
