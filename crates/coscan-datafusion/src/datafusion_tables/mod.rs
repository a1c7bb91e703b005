//! Tables that DataFusion makes of Parquet files by itself, shared query by query.
//!
//! `planner` replaces them in a query's plan by a `listing_table`, which shares the `file_list` that the engine plans
//! to read; `file_list_cache` keeps it for the next query. `named_files` makes such tables of files that a query names.

pub(crate) mod file_list;
pub(crate) mod file_list_cache;
pub(crate) mod listing_table;
pub(crate) mod named_files;
pub(crate) mod planner;
