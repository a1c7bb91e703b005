//! Published results.

use crate::metric::Metric;

/// A published result.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperFigure<M = Metric> {
    /// The case.
    pub case: String,
    /// The name of the policy.
    pub policy: String,
    /// The query that it is the average of, such as `F-10`; `None` for all queries.
    pub query: Option<String>,
    /// The metric that was measured.
    pub metric: M,
    /// The result, in the unit of the metric.
    pub value: f64,
    /// Whether it was computed for an ideal schedule, not measured.
    pub ideal: bool,
}

/// A published order of policies.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperOrder {
    /// The metric that was measured.
    pub metric: Metric,
    /// The query that was measured, such as `F-10`; `None` for all queries.
    pub query: Option<String>,
    /// The names of policies, the one with the smallest value first.
    pub smallest_first: Vec<String>,
    /// The cases in which it holds.
    pub cases: Vec<String>,
}
