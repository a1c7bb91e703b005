//! Help for the tests of several crates: an S3 server ([`s3`]), stores with faults ([`Faults`]), small Parquet files, and
//! random changes of tables ([`random_changes`]).
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod changes;
mod faults;
mod files;
pub mod s3;

pub use changes::{RandomChanges, random_changes};
pub use faults::{Fate, Faults};
pub use files::{parquet_file, table_file, table_in_memory, write_parquet};
