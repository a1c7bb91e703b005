//! Tables that DataFusion makes of Parquet files by itself, shared query by query.

pub(crate) mod file_list;
pub(crate) mod file_list_cache;
pub(crate) mod listing_table;
pub(crate) mod named_files;
pub(crate) mod planner;
