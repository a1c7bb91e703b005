//! The outcome of a run.

use coscan_core::Time;

/// A query that has run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CyclotronQuery {
    /// The node that picked it.
    pub node: usize,
    /// The time when it was picked.
    pub start: Time,
    /// Nanoseconds until its result was there.
    pub response_ns: u64,
}

/// The outcome of a run of a ring.
#[derive(Clone, PartialEq, Debug)]
pub struct CyclotronOutcome {
    /// The queries that ended, in that order.
    pub queries: Vec<CyclotronQuery>,
    /// Nanoseconds until the last one ended.
    pub total_ns: u64,
    /// The node at which queries blocked each other, which ends the run.
    pub blocked: Option<usize>,
    /// For each node, bytes per second from it to its successor while there was something to send.
    pub bytes_per_second: Vec<f64>,
    /// Fragments that went from a node to its successor.
    pub hops: u64,
    /// Fragments that were taken from the ring.
    pub taken: u64,
    /// Fragments that owners read from their disks.
    pub reads: u64,
    /// Messages without fragments.
    pub messages: u64,
    /// The highest threshold at any node.
    pub threshold_max: f64,
}

impl CyclotronOutcome {
    /// Seconds of a query, on average. If a node is given, only its queries count.
    #[must_use]
    pub fn response_s(&self, node: Option<usize>) -> f64 {
        let here = self.queries.iter().filter(|query| node.is_none_or(|node| query.node == node));
        let (sum, count) = here.fold((0.0, 0.0), |(sum, count), query| {
            (sum + query.response_ns as f64 / 1e9, count + 1.0)
        });
        sum / count
    }

    /// Queries per second of the whole ring.
    #[must_use]
    pub fn queries_per_second(&self) -> f64 {
        self.queries.len() as f64 / (self.total_ns as f64 / 1e9)
    }
}
