//! The buffer manager from outside: right rows for each scan, whatever happens to stores, threads and memory.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cancel;
mod changed_rows;
mod cluster;
mod cluster_messages;
mod common;
mod cpu_scheduling;
mod decode_once;
mod extending;
mod faults;
mod find_rows;
mod first_rows;
mod folders;
mod hung_mount;
mod idle_columns;
mod joint_scans;
mod memory;
mod opening;
mod recording;
mod shared_strings;
mod sharing;
mod slow_down;
mod sparse_scans;
mod steps;
mod threads;
mod unpolled;
mod watching;
