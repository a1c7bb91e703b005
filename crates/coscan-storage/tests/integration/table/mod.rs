//! `coscan_storage::table` against parquet's own reader.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod decoding;
mod evolution;
mod files;
mod hostile_footers;
mod layouts;
mod opening;
mod prefix;
mod reading;
mod sparse;
mod statistics;
mod support;
