//! Tests from outside.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod crashes;
mod histories;
mod kills;
mod rules;
mod states;
