//! Shared scans for DataFusion sessions: queries of a session read the same tables through one buffer manager.
//!
//! It does not decide what to read, hold pages or decode them (`coscan-runtime` and below do), nor filter rows, unless
//! the session pushes filters down: its own operators do that above the scan, exactly as without coscan.
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
//! - [`install`] or [`Coscan::install`] sets a session up (`session`, `coscan`, `settings`, `memory`);
//! - `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes a [`SharedTableProvider`] (`factory`, `format`), whose files are
//!   listed when it is made and when it is refreshed (`snapshots`, `listing`, `location`, `partitions`, `order`, `statistics`);
//! - what the engine made of Parquet files becomes shared when a query is planned (`planner`, `listing_table`,
//!   `file_list`), and is remembered for the next one (`file_list_cache`);
//! - both plan a [`SharedScanExec`] (`provider`, `planning`, `source`, `exec`, `pruning`, `nan`, `bloom_filters`), or the
//!   engine's own scan where that costs less (`direct`, `direct_reader`); a few first rows take no more than the first
//!   pages of each column (`first_pages`);
//! - scans are in the order of their files where the plan sorts by it (`stored_order`);
//! - what small scans read is not spread over tasks (`one_task`), and scans know what a top-k sorts by (`first_rows`,
//!   `ranking`); what statistics answer is checked when it runs (`unchanged`);
//! - its partitions are executed (`run`): each has its share of the chunks (`shares`), together they are workers of a
//!   scan (`reading`, `dynamic_pruning`, `metrics`), and each gives a stream (`stream`), filtered if the session asks for it
//!   (`row_filter`).

mod bloom_filters;
mod coscan;
mod direct;
mod direct_reader;
mod dynamic_pruning;
mod error;
mod exec;
mod factory;
mod file_list;
mod file_list_cache;
mod first_pages;
mod format;
mod listing;
mod listing_table;
mod location;
mod memory;
mod metrics;
mod nan;
mod one_task;
mod order;
mod partitions;
mod planner;
mod planning;
mod provider;
mod pruning;
mod ranking;
mod reading;
mod row_filter;
mod run;
mod session;
mod settings;
mod shares;
mod snapshots;
mod source;
mod statistics;
mod stored_order;
mod stream;
mod top_k;
mod unchanged;

pub use coscan::Coscan;
pub use error::QueryError;
pub use exec::SharedScanExec;
pub use memory::SharedMemoryPool;
pub use provider::{SharedTableProvider, refresh};
pub use session::install;
pub use settings::SessionSettings;

pub use coscan_runtime as runtime;
