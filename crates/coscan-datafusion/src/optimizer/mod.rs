//! Rules of the physical optimizer, and one of the logical.
//!
//! `needed_order` and `top_k` tell a scan in which order its rows are wanted; `sorts` finds the way from a sort down to
//! its scan. `ordered_aggregates` and `clustered_joins` let aggregations and joins go chunk by chunk; `cluster_search`
//! finds the joins that can, and asks `hash_joins` about each; `scan_path` has the filters and projections above a scan.
//! `in_order_tasks` gives scans in order several tasks. `remove_repartition` keeps small queries from being spread,
//! `unchanged_files` guards answers from statistics. Others guard against wrong answers of the
//! engine: `filter_pushdown`, `grouping_sets`, and the logical `changed_rows`.

pub(crate) mod changed_rows;
mod cluster_search;
pub(crate) mod clustered_joins;
pub(crate) mod filter_pushdown;
pub(crate) mod grouping_sets;
mod hash_joins;
pub(crate) mod in_order_tasks;
pub(crate) mod needed_order;
pub(crate) mod ordered_aggregates;
pub(crate) mod remove_repartition;
mod scan_path;
pub(crate) mod sorts;
pub(crate) mod top_k;
pub(crate) mod unchanged_files;
