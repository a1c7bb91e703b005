//! The scan operator, and how its partitions are executed.
//!
//! `exec` is the operator. `executions` and `shares` say which partition gives which chunk, `chunk_scan` reads them: in
//! the order of `ranking`, without those that `dynamic_pruning` drops. A partition takes them by its `chunk_reader`.
//! `stream` gives the rows that pass `row_filter`; `first_pages` serves small limits; `metrics` are the figures of EXPLAIN ANALYZE.

pub(crate) mod chunk_reader;
pub(crate) mod chunk_scan;
pub(crate) mod dynamic_pruning;
pub(crate) mod exec;
pub(crate) mod executions;
pub(crate) mod first_pages;
pub(crate) mod metrics;
pub(crate) mod ranking;
pub(crate) mod row_filter;
pub(crate) mod shares;
pub(crate) mod stream;
