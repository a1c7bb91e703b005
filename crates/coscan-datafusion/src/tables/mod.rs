//! Tables whose scans are shared: how they are made, which files they have, and what plans read of them.
//!
//! `factory` and `format` read a `CREATE EXTERNAL TABLE`, `provider` is the table. `location` and `hive` find files,
//! `listing` and `opener` open them, `snapshots` holds the files that queries see now. A `replica` of the table has
//! snapshots of its own. Plans read a `source`, with its `statistics` and `order`; `cached_source` lets it go when memory
//! is short.

pub(crate) mod cached_source;
pub(crate) mod factory;
pub(crate) mod format;
pub(crate) mod hive;
pub(crate) mod listing;
pub(crate) mod location;
pub(crate) mod opener;
pub(crate) mod order;
pub(crate) mod provider;
pub(crate) mod replica;
pub(crate) mod snapshots;
pub(crate) mod source;
pub(crate) mod statistics;
pub(crate) mod stored_order;
