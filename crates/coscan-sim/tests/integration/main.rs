//! Tests of the simulator: the papers' claims, our own experiments, faults and reports.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bounds;
mod by_hand;
mod changing_tables;
mod claims;
mod cluster;
mod clustered;
mod cyclotron;
mod faults;
mod memory;
mod own_experiments;
mod papers;
mod recorded;
mod report;
mod spec;
mod starving;
mod support;
mod versions;
