//! The Active Buffer Manager on real storage: queries that read the same tables at the same time share one stream of
//! reads and decoding.
//!
//! It knows no SQL: `coscan-datafusion` brings that. It decides nothing about what to read, evict or hand out:
//! `coscan-core` does. Here are the loads under way, the bytes of the pool, decoded columns, memory and cancellation.
//!
//! [`BufferManager`] is the way in. A [`SharedTable`] is a table registered with it, a [`Scan`] what a query still
//! needs of one, a [`ScanStream`] the record batches that one of its workers takes. [`FirstRows`] are so few rows that
//! nobody has to read chunks for them.

mod batch;
mod columns;
mod concurrency_limit;
mod decode_cache;
mod driver;
mod error;
mod extensions;
mod first_rows;
mod lease;
mod load;
mod manager;
mod memory;
mod metadata_cache;
mod metrics;
mod open_files;
mod options;
mod placement;
mod polls;
mod processors;
mod reading;
mod recording;
mod registry;
mod reservation;
mod scan;
mod stream;
mod table;
mod waiting;

pub use error::{ExtendError, OpenError, ScanError};
pub use first_rows::FirstRows;
pub use manager::BufferManager;
pub use memory::{MemoryUse, OperatorMemory};
pub use metadata_cache::{CacheSlot, MetadataReservation};
pub use metrics::{ManagerReport, ScanMetrics};
pub use options::{Options, OptionsError};
pub use recording::Recording;
pub use scan::{Scan, ScanRequest};
pub use stream::ScanStream;
pub use table::{Registration, SharedTable};

pub use coscan_core as core;
pub use coscan_storage as storage;
