//! Parquet tables on disks and object stores: the bytes that hold rows, reading and decoding them.
//!
//! `coscan-core` decides what to read and when, `coscan-runtime` keeps pages and counts memory, `coscan-datafusion`
//! runs queries. This crate does none of that and depends on no query engine.

/// Changes by position.
pub use coscan_pdt as pdt;

pub mod stores;
pub mod table;
