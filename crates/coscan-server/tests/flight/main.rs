//! Arrow Flight SQL with the client of arrow-flight.
#![allow(clippy::unwrap_used)]

mod client;
#[path = "../support/mod.rs"]
mod support;

mod encryption;
mod ends;
mod errors;
mod logins;
mod metadata;
mod noise;
mod statements;
