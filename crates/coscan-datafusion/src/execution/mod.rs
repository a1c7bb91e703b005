//! The scan operator, and how its partitions are executed.

pub(crate) mod dynamic_pruning;
pub(crate) mod exec;
pub(crate) mod executions;
pub(crate) mod first_pages;
pub(crate) mod metrics;
pub(crate) mod ranking;
pub(crate) mod reading;
pub(crate) mod row_filter;
pub(crate) mod shares;
pub(crate) mod stream;
