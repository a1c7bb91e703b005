//! Shared scans for DataFusion: the queries of all sessions with the same buffer manager share what they read.
//!
//! This crate does not decide what to read, hold pages or decode them: `coscan-runtime` and the crates below it do. Nor
//! does it filter rows, unless the session pushes filters down: operators above the scan do, as without coscan.
//!
//! ```no_run
//! # async fn example() -> datafusion::error::Result<()> {
//! use coscan_runtime::{BufferManager, Options};
//! use datafusion::prelude::SessionContext;
//!
//! let manager = BufferManager::new(Options::default()).map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))?;
//! let context = SessionContext::new();
//! coscan_datafusion::install(&context, &manager)?;
//! context.sql("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'data/'").await?;
//! context.sql("SELECT count(*) FROM t").await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! In call order:
//! - the crate's root sets a session up: [`install`] or [`CoscanOptions::install`] (`session`) adds optimizer rules, a
//!   planner, a table factory, `settings`, a `memory` pool and `session_stores`; `options` is the configuration, `error`
//!   the errors.
//! - `tables`: `CREATE EXTERNAL TABLE … STORED AS PARQUET` (`factory`, `format`) makes a [`SharedTableProvider`]
//!   (`provider`). Its files are found (`location`, `hive`) and opened (`listing`, `opener`) when it is made and
//!   refreshed; queries see one of its `snapshots`. A `replica` has the same rows in other files. What plans read of it is a `source` with `statistics` and an
//!   `order`, kept as long as there is memory (`cached_source`).
//! - `datafusion_tables`: tables that DataFusion makes of Parquet files, and files that queries name (`named_files`), are
//!   shared while a query is planned (`planner`, `listing_table`). The `file_list` of the query becomes a source, and
//!   is kept for the next query (`file_list_cache`).
//! - `planning`: both kinds of table plan a scan (`plan`): filters rule chunks out by statistics (`pruning`, `nan`) and
//!   `bloom_filters`, and a scan that needs little of its chunks (`selectivity`) goes to the engine's own scan
//!   (`unshared`, `unshared_reader`), which says why (`plain_source`). Of the `copies` of a table, each scan reads the one
//!   that costs least.
//! - `optimizer`: rules change the plan. Scans are in the order of their table where an operator above needs it
//!   (`needed_order`), and know what a top-k sorts by (`top_k`, `sorts`). What can go chunk by chunk is put into a
//!   sandwich (`ordered_aggregates`, `clustered_joins`), also tables in order (`in_order`). Small queries are `remove_repartition`, and answers from statistics check
//!   their files (`unchanged_files`).
//! - `chunkwise`: operators that start a plan anew for each chunk that a scan is handed.
//! - `execution`: the operator [`SharedScanExec`] (`exec`). Its partitions have `shares` of the chunks and are workers
//!   of one scan (`executions`, `chunk_scan`), which reads in the order of `ranking` and drops chunks by
//!   `dynamic_pruning`. Each reads chunks with its `chunk_reader` and gives a `stream`, through a `row_filter` if the session pushes filters down. Few first
//!   rows come from `first_pages`. EXPLAIN ANALYZE shows `metrics`.

mod chunkwise;
mod datafusion_tables;
mod error;
mod execution;
mod memory;
mod optimizer;
mod options;
mod planning;
mod query_id;
mod session;
mod session_stores;
mod settings;
mod tables;

pub use datafusion_tables::named_files::enable_url_table;
pub use error::QueryError;
pub use execution::exec::SharedScanExec;
pub use memory::SharedMemoryPool;
pub use options::CoscanOptions;
pub use query_id::QueryId;
pub use session::install;
pub use settings::SessionSettings;
pub use tables::provider::{SharedTableProvider, refresh};

pub use coscan_runtime as runtime;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
