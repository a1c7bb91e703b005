//! Tables that statements change: `INSERT`, `UPDATE`, `DELETE`, `MERGE`.
//!
//! A [`ManagedDatabase`](crate::ManagedDatabase) (`database`) has tables (`catalog`, `table`), whose rows are in Parquet files
//! of its own (`opening`, `data_files`, `opened_files`), with changes by position, and in its log (`encoding`). A session finds them in a
//! `schema`. A statement reads a version of each in one transaction (`snapshot`), which its session may have begun
//! (`transactions`, `statements`, `clauses`). What changes them is in `crate::dml`. Checkpoints write what is changed to new files
//! (`checkpoint`, `checkpoint_due`, `checkpointer`, `file_writer`, `retired_files`), since changes take `memory`. Versions that are in files as a whole are
//! shown to other engines (`publisher`, `publish_versions`).

pub(crate) mod catalog;
pub(crate) mod checkpoint;
pub(crate) mod checkpoint_due;
pub(crate) mod checkpointer;
pub(crate) mod clauses;
pub(crate) mod data_files;
pub(crate) mod database;
pub(crate) mod database_options;
pub(crate) mod encoding;
pub(crate) mod file_writer;
pub(crate) mod memory;
pub(crate) mod opened_files;
pub(crate) mod opening;
pub(crate) mod publish_versions;
pub(crate) mod publisher;
pub(crate) mod retired_files;
pub(crate) mod schema;
pub(crate) mod snapshot;
pub(crate) mod statements;
pub(crate) mod table;
pub(crate) mod transactions;
