//! Plans the scan for a query's columns, filters and limit: the chunks that it needs, and whether sharing it pays.
//!
//! `plan` calls the other modules. `pruning` (with `nan`) and `bloom_filters` rule chunks out. `selectivity` has the
//! thresholds by which a scan reads less than whole chunks, is left to the engine (`unshared`, `unshared_bytes`,
//! `unshared_reader`, with the reason in EXPLAIN: `plain_source`), or reads a replica of the table (`replica_choice`).

pub(crate) mod bloom_filters;
pub(crate) mod nan;
pub(crate) mod plain_source;
pub(crate) mod plan;
pub(crate) mod pruning;
pub(crate) mod replica_choice;
pub(crate) mod selectivity;
pub(crate) mod unshared;
pub(crate) mod unshared_bytes;
pub(crate) mod unshared_reader;
