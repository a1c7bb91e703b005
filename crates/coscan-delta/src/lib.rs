//! Delta Lake tables whose scans are shared.
//!
//! [`install`] adds `CREATE EXTERNAL TABLE … STORED AS DELTA LOCATION '…'` to a session that has coscan; [`open`] makes
//! a table without SQL. A [`DeltaTable`] reads the log of a table with `delta_kernel`, and gives its versions as
//! snapshots: lists of data files with partition values, deleted rows, and names of columns. Data files are read as
//! those of all other shared tables, so that versions share the pages that they have in common.
//!
//! ```no_run
//! # async fn example(manager: &coscan_datafusion::runtime::BufferManager) -> datafusion::error::Result<()> {
//! let context = datafusion::prelude::SessionContext::new();
//! coscan_datafusion::install(&context, manager)?;
//! coscan_delta::install(&context)?;
//! context.sql("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION 'data/'").await?;
//! context.sql("SELECT count(*) FROM t").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - `factory`: the statement that creates a table, and the functions that do so without SQL.
//! - `table`: the versions of a table, as a [`SnapshotSource`](coscan_datafusion::SnapshotSource).
//! - `log`: reads a version from the log.
//! - `columns`: columns of a version, and their names in files.
//! - `files`: data files of a version, in their store.
//! - `publishing`: tables of a database as Delta tables for other engines ([`DeltaPublisher`]).
//! - `error`: errors of the log as errors of the engine.

mod columns;
mod error;
mod factory;
mod files;
mod log;
mod publishing;
mod table;

pub use factory::{install, is_table, open};
pub use publishing::publisher::{DeltaPublisher, open_database};
pub use table::DeltaTable;
