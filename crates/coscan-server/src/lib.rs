//! A server that many clients share: one process, one pool, one stream of reads for all their queries.

pub mod config;
pub mod listen;
pub mod queries;
pub mod users;
