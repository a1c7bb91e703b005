//! The program as a user runs it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cli;
mod ring;
mod serve;
mod shell;
mod sim;
