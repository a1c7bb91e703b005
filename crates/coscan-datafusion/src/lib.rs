//! Shared scans for DataFusion: the queries of all sessions with the same buffer manager share what they read.
//!
//! This crate does not decide what to read, hold pages or decode them, which `coscan-runtime` and the crates below it
//! do. It filters rows only if the session pushes filters down. Otherwise operators above the scan do, as without
//! coscan.
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
//! The modules in call order:
//! - The root of the crate sets a session up: [`install`] or [`CoscanOptions::install`] (`session`) adds optimizer
//!   rules, a planner, a table factory, `settings`, a `memory` pool and `session_stores`. `options` is the
//!   configuration, and `error` has the errors.
//! - `tables`: `CREATE EXTERNAL TABLE … STORED AS PARQUET` (`factory`, `format`) makes a [`SharedTableProvider`]
//!   (`provider`). Its `snapshots` come from a [`SnapshotSource`] (`snapshot_source`; `listing`, `location`, `hive`),
//!   and their files are opened (`opener`) when the table is made and refreshed. A statement sees the
//!   newest one (`statement_snapshot`, by `snapshot_choice` and `statement_snapshots`), or an earlier one that it names (`time_travel`). A `replica` has the same rows in other files. Plans
//!   read a `source` with `statistics` and an `order`, which is kept as long as there is memory (`cached_source`).
//! - `managed`: tables that statements change ([`ManagedDatabase`]). `dml` makes the changes.
//! - `datafusion_tables`: tables that DataFusion makes of Parquet files, and files that queries name (`named_files`),
//!   are shared while a query is planned (`planner`, `listing_table`). The `file_list` of the query becomes a source,
//!   and is kept for the next query (`file_list_cache`).
//! - `planning`: both kinds of table plan a scan (`plan`). Filters rule chunks out by statistics (`pruning`, `nan`) and
//!   `bloom_filters`. A scan that needs little of its chunks (`selectivity`) is left to the engine's own scan
//!   (`unshared`, `unshared_reader`), which shows the reason (`plain_source`). Each scan reads the copy of a table that
//!   costs least (`replica_choice`).
//! - `optimizer`: rules change the plan. Scans are in the order of their table where an operator above needs it
//!   (`needed_order`), and get the order of a top-k above (`top_k`, `sorts`). Operators that can be executed chunk by
//!   chunk are put into a sandwich (`ordered_aggregates`, `clustered_joins`), also above tables in order
//!   (`in_order_tasks`). Aggregations share results (`shared_aggregates`), consumers of a common subplan its rows
//!   (`common_subplans`). Small queries stay in one task (`remove_repartition`). Answers from statistics check their files
//!   (`unchanged_files`).
//! - `filtering`, `aggregating`, `decimals`: filters, first stages of aggregations and arithmetic of decimals that are cheaper than the
//!   engine's.
//! - `chunkwise`: operators that start a plan anew for each chunk that a scan is handed. What they and the operators of
//!   some rules have in common is `operator`.
//! - `shared_results`: what several queries compute of a chunk is computed once.
//! - `common_subplans`: aggregations that a statement has twice are executed once.
//! - `distributed`: scans are divided among the tasks of a distributed query.
//! - `execution`: the operator [`SharedScanExec`] (`exec`). Its partitions have `shares` of the chunks and are workers
//!   of one scan (`executions`, `chunk_scan`), which reads in the order of `ranking` and drops chunks by
//!   `dynamic_pruning`. Each partition reads chunks with its `chunk_reader` and returns a `stream`, through a
//!   `row_filter` if the session pushes filters down. A few first rows are read by `first_pages`. EXPLAIN ANALYZE shows
//!   `metrics`, from which `progress` is made.

mod aggregating;
mod batch_bytes;
mod chunkwise;
mod common_subplans;
mod datafusion_tables;
mod decimals;
mod distributed;
mod dml;
mod error;
mod execution;
mod filtering;
mod managed;
mod memory;
mod operator;
mod optimizer;
mod options;
mod planning;
mod progress;
mod query_id;
mod session;
mod session_stores;
mod settings;
mod shared_results;
mod statement_snapshots;
mod tables;

pub use batch_bytes::slice_bytes;
pub use datafusion_tables::named_files::enable_url_table;
pub use distributed::planning::for_workers;
pub use distributed::task::{ChunkToDivide, NotDivisible, ScanTask, TaskTable};
pub use error::{QueryError, is_conflict, is_of_dropped_table};
pub use execution::exec::SharedScanExec;
pub use managed::checkpoint::CheckpointCounts;
pub use managed::clauses::refuse_ignored_clauses;
pub use managed::database::ManagedDatabase;
pub use managed::database_options::DatabaseOptions;
pub use managed::publisher::{DatabaseDirectory, PublishedFile, PublishedVersion, TablePublisher};
pub use managed::statements::{ManagedStatement, run_managed_statement};
pub use managed::table::ManagedTable;
pub use managed::transactions::{SavedTransaction, SessionTransaction};
pub use memory::SharedMemoryPool;
pub use options::CoscanOptions;
pub use progress::{ChunkProgress, ScanCounters};
pub use query_id::QueryId;
pub use session::install;
pub use settings::{SessionSettings, ShareResults};
pub use shared_results::SharedResults;
pub use tables::provider::SharedTableProvider;
pub use tables::refresh::refresh;
pub use tables::snapshot_source::{SnapshotFile, SnapshotSource, SnapshotTime, TableSnapshot};
pub use tables::time_travel::count_versions;

pub use coscan_runtime as runtime;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
