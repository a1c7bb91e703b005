//! Tests of stores and tables from outside: real files, and an S3 server in the process.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod stores;
mod table;
