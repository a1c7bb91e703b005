//! The scan operator, and the execution of its partitions.
//!
//! `exec` is the operator. `executions` and `shares` determine which partition returns which chunk. `chunk_scan` reads
//! the chunks in the order of `ranking`, without those that `dynamic_pruning` drops. A partition reads them with its
//! `chunk_reader`, or takes the state of a chunk that another query has computed (`taken_states`). `stream` returns the
//! rows that pass `row_filter`. `first_pages` serves small limits. `metrics` has the figures of EXPLAIN ANALYZE.

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
pub(crate) mod taken_states;
