//! From a query's columns, filters and limit to a scan: which chunks it needs, and whether it is worth sharing.
//!
//! `plan` calls the others. `pruning` (with `nan`) and `bloom_filters` rule chunks out; `selectivity` has the
//! thresholds by which a scan reads less than whole chunks, is left to the engine (`direct`, `direct_bytes`,
//! `direct_reader`, with the reason in EXPLAIN: `plain_source`), or reads a replica of the table (`copies`).

pub(crate) mod bloom_filters;
pub(crate) mod copies;
pub(crate) mod direct;
pub(crate) mod direct_bytes;
pub(crate) mod direct_reader;
pub(crate) mod nan;
pub(crate) mod plain_source;
pub(crate) mod plan;
pub(crate) mod pruning;
pub(crate) mod selectivity;
