//! Tables as they lie on disks and object stores: which bytes hold which rows, how to fetch them and how to decode them.
//!
//! It deliberately does not decide what to read or when, keep anything in memory, count memory, or know of queries:
//! `coscan-core` decides, `coscan-runtime` keeps and counts, `coscan-datafusion` queries. It depends on no query engine.

pub mod stores;
pub mod table;
