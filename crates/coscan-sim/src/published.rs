//! Results that were published.

use crate::metric::Metric;

/// A result that was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperFigure {
    /// The case.
    pub case: String,
    /// The name of the policy.
    pub policy: String,
    /// The query whose average it is, such as `F-10`; of all queries if there is none.
    pub query: Option<String>,
    /// What was measured.
    pub metric: Metric,
    /// The result, in the unit of the metric.
    pub value: f64,
    /// Whether it was worked out for an ideal schedule, not measured.
    pub ideal: bool,
}

/// An order of policies that was published.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperOrder {
    /// What was measured.
    pub metric: Metric,
    /// The query that was measured, such as `F-10`; all of them if there is none.
    pub query: Option<String>,
    /// The names of policies, the one with the smallest value first.
    pub smallest_first: Vec<String>,
    /// The cases in which it holds.
    pub cases: Vec<String>,
}
