//! The reasons why an aggregation above a scan does not share the results of chunks, for EXPLAIN.

use std::fmt;

/// The reason why an aggregation computes all chunks of a scan itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnsharedReason {
    /// What it computes is not known to be the same in every session, or it is DISTINCT, ordered or over grouping sets.
    Computation,
    /// It may have many groups.
    ManyGroups,
    /// The scan is in order, reads selected rows only, evaluates filters itself, or has a filter that changes while it runs.
    Scan,
}

impl fmt::Display for UnsharedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Computation => "not a computation that can be shared",
            Self::ManyGroups => "it may have many groups",
            Self::Scan => "the scan does not give whole chunks in any order",
        })
    }
}
