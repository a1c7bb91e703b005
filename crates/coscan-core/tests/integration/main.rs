//! Tests of the scheduler from outside: whole scans against a model of the device.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod ahead;
mod golden;
mod memory;
mod pool_map;
mod predictive;
mod properties;
mod recording;
mod remote;
mod reuse;
mod scenarios;
mod short;
mod tables;
mod withdraw;
mod world;
