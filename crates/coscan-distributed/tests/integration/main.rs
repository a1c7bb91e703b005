//! Tests of queries over several workers, in one process.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cluster;
mod data;
mod failures;
mod faults;
mod hostile;
mod interleavings;
mod memory;
mod settings;
mod sharing;
mod tpch;
