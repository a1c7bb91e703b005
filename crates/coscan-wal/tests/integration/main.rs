//! Tests of the log on simulated disks, and of the disks.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod corruption;
mod disks;
mod every_step;
mod gate;
mod group;
mod group_async;
mod log;
mod model;
mod publishing;
mod support;
