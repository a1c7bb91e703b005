//! Tests of changes from outside. `lib.rs` includes them once more, with small nodes and blocks.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod checkpoints;
mod database;
mod errors;
mod model;
mod reading;
mod transactions;
mod versions;
