//! Tests of the server from outside: its SQL service in process, and clients of each protocol.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod browser;
#[cfg(feature = "flight-sql")]
mod clients;
mod dashboard;
#[cfg(feature = "flight-sql")]
mod flight;
mod http;
mod installed_postgresql;
mod monitoring;
mod postgres;
mod recorded;
mod ring;
mod sql;
mod support;
mod system_tables;
mod tls;
mod wire;
mod workers;
