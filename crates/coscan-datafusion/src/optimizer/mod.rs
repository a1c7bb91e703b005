//! Rules of the physical optimizer (each a `rule`), and one of the logical optimizer.
//!
//! `needed_order` and `top_k` set the order in which the rows of a scan are needed. `sorts` finds the operators between
//! a sort and its scan. `ordered_aggregates` and `clustered_joins` execute aggregations and joins chunk by chunk.
//! `cluster_search` finds the joins for which that is possible, with the help of `hash_joins`. `scan_path` has the
//! filters and projections above a scan. `in_order_tasks` gives scans in order several tasks. `remove_repartition`
//! keeps small queries in one task. `shared_aggregates` lets aggregations share results, `common_subplans` equal ones of
//! one statement their rows. `dynamic_filters` has rows dropped before they are aggregated or repartitioned. `unchanged_files`
//! guards answers from statistics. Other rules guard against wrong answers of the engine: `filter_pushdown`,
//! `grouping_sets`, and the logical `changed_rows`.

pub(crate) mod changed_rows;
mod cluster_search;
pub(crate) mod clustered_joins;
pub(crate) mod common_subplans;
pub(crate) mod dynamic_filters;
pub(crate) mod filter_pushdown;
pub(crate) mod grouping_sets;
mod hash_joins;
pub(crate) mod in_order_tasks;
pub(crate) mod needed_order;
pub(crate) mod ordered_aggregates;
pub(crate) mod remove_repartition;
pub(crate) mod rule;
pub(crate) mod scan_path;
pub(crate) mod shared_aggregates;
mod sorts;
pub(crate) mod top_k;
pub(crate) mod unchanged_files;
