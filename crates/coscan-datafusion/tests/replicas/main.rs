//! Tables with replicas: the same rows in another order or layout.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod agreement;
mod choice;
mod fixture;
mod order;
mod rows;
mod sharing;
mod snapshots;
#[path = "../support/mod.rs"]
mod support;
