//! The Active Buffer Manager on real storage: queries that read the same tables at the same time share one stream of
//! reads and decoding.
//!
//! It knows no SQL: that is in `coscan-datafusion`. It decides nothing about what to read, evict or hand out:
//! `coscan-core` does. This crate has the loads in flight, the bytes of the pool, decoded columns, memory and
//! cancellation.
//!
//! [`BufferManager`] is the entry point. A [`SharedTable`] is a table registered with it, a [`Scan`] the registered
//! needs of a query, and a [`ScanStream`] the record batches that one of its workers takes. [`FirstRows`] reads the
//! first rows of chunks, if they are too few to be worth whole chunks. A [`JointTable`] has several tables that a
//! [`JointScan`] reads together.

mod chunks;
mod cpu;
mod driver;
mod error;
mod extensions;
mod io;
mod joint;
mod lookup;
mod machine;
mod manager;
mod memory;
mod observe;
mod operator_memory;
mod options;
mod peers;
mod program_memory;
mod scans;
mod sync;
mod tables;
pub mod units;

pub use error::{ExtendError, JointTableError, OpenError, ScanError};
pub use joint::scan::{JointBatch, JointScan, JointScanRequest, JointStream};
pub use joint::table::JointTable;
pub use lookup::find_rows::find_rows;
pub use lookup::first_rows::FirstRows;
pub use machine::usable_memory_bytes;
pub use manager::BufferManager;
pub use memory::thread_decoded_bytes;
pub use observe::events::{Event, EventKind, Events};
pub use observe::metrics::{ManagerReport, ScanMetrics};
pub use observe::recording::Recording;
pub use observe::scan_report::{ScanReport, ScanWait};
pub use observe::watching::{ScanBytes, TableReport};
pub use operator_memory::OperatorMemory;
pub use options::{Options, OptionsError};
pub use peers::{
    CirculatingMessage, Cluster, ClusterOptions, ClusterReport, ExtentReport, FileName, FragmentId,
    FragmentSpace, Network, Outgoing, OutgoingFragment, PeerMessage, SharedFileReport,
};
pub use scans::request::{ScanLabel, ScanRequest};
pub use scans::scan::Scan;
pub use scans::stream::ScanStream;
pub use tables::metadata_cache::CachedMetadata;
pub use tables::metadata_reservation::MetadataReservation;
pub use tables::table::{Registration, SharedTable};

pub use coscan_core as core;
pub use coscan_ring as ring;
pub use coscan_storage as storage;
