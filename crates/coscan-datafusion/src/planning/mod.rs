//! From a query's columns, filters and limit to a scan: which chunks it needs, and whether it is worth sharing.

pub(crate) mod bloom_filters;
pub(crate) mod direct;
pub(crate) mod direct_reader;
pub(crate) mod nan;
pub(crate) mod plan;
pub(crate) mod pruning;
