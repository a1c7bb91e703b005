//! The reasons why a scan is in any order, for EXPLAIN.

use std::fmt;
use std::sync::Arc;

/// The reason why the rows of a scan come in any order. The name is that of an operator, or ORDER BY.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum UnorderedReason {
    /// No operator above needs an order.
    NotNeeded,
    /// The operator needs one, but the table has none.
    NoneDeclared(Arc<str>),
    /// The table has another order than the operator needs.
    Other(Arc<str>),
    /// An operator between the scan and the named one does not keep the order of the scan.
    Lost(Arc<str>),
    /// A sort or a top-k costs less, since fewer rows reach the operator than the scan returns.
    SortCostsLess(Arc<str>),
}

impl fmt::Display for UnorderedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded => write!(f, "no order needed"),
            Self::NoneDeclared(by) => write!(f, "{by} needs an order and the table has none"),
            Self::Other(by) => write!(f, "{by} needs another order"),
            Self::Lost(by) => write!(f, "the order is lost below {by}"),
            Self::SortCostsLess(by) => write!(f, "a sort of fewer rows for {by} costs less"),
        }
    }
}
