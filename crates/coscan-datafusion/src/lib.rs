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
//! - [`install`] or [`Coscan::install`] sets a session up (`session`, `coscan`, `settings`, `memory`, `session_stores`);
//! - `CREATE EXTERNAL TABLE … STORED AS PARQUET` makes a [`SharedTableProvider`] (`factory`, `format`), whose files are
//!   listed when it is made and when it is refreshed (`snapshots`, `opener`, `listing`, `location`, `partitions`, `order`, `statistics`);
//! - queries name files themselves if the session lets them ([`enable_url_table`]: `named_files`);
//! - what the engine made of Parquet files becomes shared when a query is planned (`planner`, `listing_table`,
//!   `file_list`), and is remembered for the next one (`file_list_cache`, `cached_source`);
//! - both plan a [`SharedScanExec`] (`provider`, `planning`, `source`, `exec`, `pruning`, `nan`, `bloom_filters`), or the
//!   engine's own scan where that costs less (`direct`, `direct_reader`); a few first rows take no more than the first
//!   pages of each column (`first_pages`);
//! - scans are in the order of their files where the plan sorts by it (`stored_order`, `sorts`);
//! - what small scans read is not spread over tasks (`one_task`), and scans know what a top-k sorts by (`first_rows`,
//!   `ranking`); what statistics answer is checked when it runs (`unchanged`);
//! - its partitions are executed (`run`): each has its share of the chunks (`shares`), together they are workers of a
//!   scan (`reading`, `dynamic_pruning`, `metrics`), and each gives a stream (`stream`), filtered if the session asks for it
//!   (`row_filter`).

mod coscan;
mod engine_tables;
mod error;
mod execution;
mod memory;
mod optimizer;
mod planning;
mod session;
mod session_stores;
mod settings;
mod tables;

pub use coscan::Coscan;
pub use engine_tables::named_files::enable_url_table;
pub use error::QueryError;
pub use execution::exec::SharedScanExec;
pub use memory::SharedMemoryPool;
pub use session::install;
pub use settings::SessionSettings;
pub use tables::provider::{SharedTableProvider, refresh};

pub use coscan_runtime as runtime;
