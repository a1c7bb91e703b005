//! Tests of queries over several workers, in one process.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cluster;
mod data;
mod explain;
mod failures;
mod faults;
mod hostile;
mod interleavings;
mod memory;
mod not_sent;
mod random_queries;
mod settings;
mod sharing;
mod sql;
mod tpch;

/// Help of the tests of coscan-datafusion, whose SQL suite and random queries are executed here over workers.
#[path = "../../../coscan-datafusion/tests/integration/support/mod.rs"]
#[allow(dead_code, reason = "not all of it is for these tests")]
mod support;
