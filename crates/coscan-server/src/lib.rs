//! A server that many clients share: one process, one pool, one stream of reads for all their queries.
//!
//! - [`config`]: what the server is told to do; [`users`]: who may log in, and read what.
//! - [`engine`]: SQL for a session of a user; [`queries`]: which queries run, wait and ran.
//! - [`listen`]: connections before any protocol; [`postgres`]: the PostgreSQL protocol; `flight`: Arrow Flight SQL, with
//!   the cargo feature `flight-sql`; [`http`]: the window, a page that shows the scheduler at work, and numbers for
//!   monitoring.
//!
//! Imports go one way: protocols use the engine, which uses `system_tables`, queries, users and the configuration.
//! Protocols do not know each other.

mod check;
pub mod config;
pub mod engine;
#[cfg(feature = "flight-sql")]
pub mod flight;
pub mod http;
pub mod listen;
pub mod postgres;
pub mod queries;
mod server;
mod system_tables;
pub mod users;

pub use check::check;
pub use engine::STACK_BYTES;
pub use server::{Server, ServerError, Stopped};
