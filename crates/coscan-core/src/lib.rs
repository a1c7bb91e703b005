//! The Active Buffer Manager of coscan as a pure state machine: it decides which pages to read, for which scan, which to
//! evict, and which chunks to hand out.
//!
//! It reads no file, holds no data and has no clock, thread, lock or random number. The caller drives it and does the
//! work. So the same decisions run on a real disk and in a simulator, and a recorded run replays in a test: see
//! [`log`].
//!
//! Start at [`ActiveBufferManager`]. Pages are the units that are read and cached. A table is a list of chunks, each a
//! list of pages ([`ChunkSpec`], or a whole [`Layout`] at once). Tables may share pages. A [`ScanSpec`] is the request
//! of a query; a [`Policy`] decides by the [`State`]. Memory beside the pool is decided here, too: see
//! [`MemoryLimits`]. The papers are cited as `[CS04]` (the technical report of 2004), `[CS07]` (Cooperative Scans, VLDB
//! 2007) and `[CS11]` (Świtakowski's thesis, 2011).

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod action;
mod audit;
mod chunks;
mod classes;
mod decoded;
mod error;
mod ids;
mod layout;
pub mod log;
mod manager;
mod memory;
mod pages;
pub mod policy;
mod pool;
mod pool_map;
mod random;
mod scan;
mod set;
mod slots;
mod state;
mod table;
mod wait_reasons;

pub use action::Action;
pub use audit::Discrepancy;
pub use chunks::ChunkSpec;
pub use classes::{Class, ClassKey, Classes};
pub use error::{
    AddChunksError, MissingMemory, RemovePagesError, RemoveTableError, RequestError,
    RetireChunksError, StartScanError,
};
pub use ids::{
    ChunkIndex, ClassIndex, ComputationId, DeviceId, GroupIndex, Index, LoadId, PageId, PageIndex,
    ScanId, ScanPosition, SliceId, TableId, TicketId, Time, WorkerIndex,
};
pub use layout::{Layout, LayoutBuilder};
pub use manager::{ActiveBufferManager, Config};
pub use memory::{MemoryLimits, MemoryStage, UnmetMemoryRequest};
pub use pages::Source;
pub use policy::{Policy, PolicyKind, UnknownPolicy};
pub use pool_map::{MapCell, PoolMap, PoolMapBuilder, SHARING_LEVELS};
pub use random::SplitMix64;
pub use scan::{Order, PriorityBounds, PriorityClass, RemoteQuery, Scan, ScanCounts, ScanSpec};
pub use set::{HierarchicalBitSet, IndexSet};
pub use slots::LoadSlots;
pub use state::{CandidateKind, LoadCandidates, State};
pub use table::Table;
pub use wait_reasons::{Wait, WaitsFor};
