//! The answers of TPC-H and TPC-DS, and the measurements and reports of the benchmarks.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod lineitem;
mod report;
mod runner;
mod support;
mod tpcds_answers;
mod tpch_answers;
mod workload;
