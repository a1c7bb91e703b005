//! Tests of the ring from outside.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod circulate;
mod membership;
mod node;
