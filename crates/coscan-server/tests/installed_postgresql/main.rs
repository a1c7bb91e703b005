//! The programs of PostgreSQL itself: psql, and a server that has the tables here as foreign ones, and whose values are
//! compared with those here. They run only on request, and need PostgreSQL (`apt-get install postgresql`):
//! `cargo test --workspace --test installed_postgresql -- --ignored`. The tests in tests/postgres need nothing.
#![allow(clippy::unwrap_used)]

mod foreign_tables;
mod installed;
mod psql;
#[path = "../support/mod.rs"]
mod support;
mod values;
