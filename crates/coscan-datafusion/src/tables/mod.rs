//! Tables whose scans are shared: how they are made, which files they have, and what plans read of them.
//!
//! `factory` and `format` read a `CREATE EXTERNAL TABLE`, `provider` is the table. Its `snapshots` come from a
//! `snapshot_source`, such as a `listing`, which finds files by `location` and `hive`. The `opener` opens their files.
//! A statement sees one snapshot of each table (`statement_snapshot`, by `snapshot_choice`); `time_travel` plans `VERSION AS OF`. `insert` writes new
//! files, `refresh` looks for them. A `replica` of the table has snapshots of its own. Plans read a `source`, with its
//! `statistics` and its order (`order`, or `stored_order`); `cached_source` lets it go when memory is short.

pub(crate) mod cached_source;
pub(crate) mod factory;
pub(crate) mod format;
pub(crate) mod hive;
pub(crate) mod insert;
pub(crate) mod listing;
pub(crate) mod location;
pub(crate) mod opener;
pub(crate) mod order;
pub(crate) mod provider;
pub(crate) mod refresh;
pub(crate) mod replica;
pub(crate) mod snapshot_choice;
pub(crate) mod snapshot_source;
pub(crate) mod snapshots;
pub(crate) mod source;
pub(crate) mod statement_snapshot;
pub(crate) mod statistics;
pub(crate) mod stored_order;
pub(crate) mod time_travel;
