//! Tests of the program by its command line.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bench;
mod cli;
mod database;
mod program;
mod ring;
mod serve;
mod shell;
mod sim;
