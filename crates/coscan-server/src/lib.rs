//! A server for many clients: one process, one pool, one stream of reads for all their queries.
//!
//! - [`config`]: the configuration; [`users`]: users, passwords and grants.
//! - [`sql`]: SQL for the sessions of users; [`queries`]: waiting, running and recent queries.
//! - [`listen`]: connections of all protocols; [`postgres`]: the PostgreSQL protocol; `flight`: Arrow Flight SQL, with
//!   the cargo feature `flight-sql`; [`http`]: the dashboard, a web page that shows the scheduler at work, and metrics.
//!
//! `ring` starts the sharing with other servers.
//!
//! Imports go one way: protocols import `sql`, which imports `system_tables`, queries, users and the
//! configuration. Protocols also import queries, users and `listen`, but not each other.

mod check;
pub mod config;
#[cfg(feature = "flight-sql")]
pub mod flight;
pub mod http;
mod known_workers;
pub mod listen;
mod members;
pub mod postgres;
pub mod queries;
mod ring;
mod server;
pub mod sql;
mod system_tables;
pub mod users;
#[cfg(feature = "distributed")]
mod workers;

pub use check::{check, exposed_files};
pub use coscan_transport::{PeerStatus, new_key as new_ring_key};
pub use postgres::sqlstate;
pub use ring::RingError;
pub use server::{Server, ServerError, Stopped};
pub use sql::{Allocator, STACK_BYTES, check_chains, query_error, set_allocator};
#[cfg(feature = "distributed")]
pub use workers::WorkersError;
