//! The Active Buffer Manager on real storage: queries that read the same tables at the same time share one stream of
//! reads and decoding.
//!
//! It knows no SQL: that is in `coscan-datafusion`. It decides nothing about what to read, evict or hand out:
//! `coscan-core` does. This crate has the loads in flight, the bytes of the pool, decoded columns, memory and
//! cancellation.
//!
//! [`BufferManager`] is the entry point. A [`SharedTable`] is a table registered with it, a [`Scan`] the registered needs
//! of a query, a [`ScanStream`] the record batches that one of its workers takes. [`FirstRows`] reads so few rows
//! that they are not worth whole chunks. A [`JointTable`] has several tables that a [`JointScan`] reads together.

mod batch;
mod bell;
mod columns;
mod concurrency_limit;
mod cpu_scheduler;
mod decode_cache;
mod destructor;
mod driver;
mod error;
mod events;
mod extensions;
mod find_rows;
mod first_rows;
mod footer_reader;
mod io_runtime;
mod joint_layout;
mod joint_scan;
mod joint_table;
mod lease;
mod load;
mod manager;
mod memory;
mod metadata_cache;
mod metrics;
mod open_files;
mod operator_memory;
mod options;
mod recorder;
mod recording;
mod registry;
mod retry;
mod row_selection;
mod scan;
mod scan_handle;
mod scan_parts;
mod scan_report;
mod scan_request;
mod snapshot;
mod store_requests;
mod stream;
mod table;
mod watching;
mod worker;
mod worker_activity;
mod worker_stream;
mod yield_policy;

pub use error::{ExtendError, JointTableError, OpenError, ScanError};
pub use events::{Event, EventKind, Events};
pub use find_rows::find_rows;
pub use first_rows::FirstRows;
pub use joint_scan::{JointBatch, JointScan, JointScanRequest, JointStream};
pub use joint_table::JointTable;
pub use manager::BufferManager;
pub use metadata_cache::{CacheSlot, MetadataReservation};
pub use metrics::{ManagerReport, ScanMetrics};
pub use operator_memory::OperatorMemory;
pub use options::{Options, OptionsError};
pub use recording::Recording;
pub use scan::Scan;
pub use scan_report::{ScanReport, ScanWait};
pub use scan_request::{ScanLabel, ScanRequest};
pub use stream::ScanStream;
pub use table::{Registration, SharedTable};
pub use watching::{ScanBytes, TableReport};

pub use coscan_core as core;
pub use coscan_storage as storage;
