//! The Active Buffer Manager of coscan as a pure state machine: it decides what to read next, for whom, what to evict
//! and what to hand out.
//!
//! It reads no file, holds no data and has no clock, thread, lock or random number: the caller drives it and does the
//! work. So the same decisions run on a real disk and in a simulator, and a recorded run replays in a test: see [`log`].
//!
//! Start at [`ActiveBufferManager`]. A [`Layout`] says where the rows of a table lie, a [`ScanSpec`] what a query wants
//! of them, a [`Policy`] decides; [`State`] is what policies see. The papers are cited as `[CS07 §4]`: Cooperative
//! Scans, VLDB 2007; `[CS11]`: Świtakowski's thesis, 2011.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod action;
mod audit;
mod classes;
mod error;
mod ids;
mod layout;
pub mod log;
mod manager;
pub mod policy;
mod pool;
mod scan;
mod set;
mod state;
mod table;

pub use action::Action;
pub use audit::Discrepancy;
pub use classes::{Class, ClassKey, Classes};
pub use error::{RemoveTableError, RequestError, StartScanError};
pub use ids::{
    ChunkIndex, ClassIndex, GroupIndex, Index, LoadId, PageId, PageIndex, ScanId, SlotIndex,
    TableId, Time, WorkerIndex,
};
pub use layout::{Layout, LayoutBuilder};
pub use manager::{ActiveBufferManager, Config};
pub use policy::{Policy, PolicyKind, UnknownPolicy};
pub use scan::{Order, Scan, ScanLength, ScanReport, ScanSpec};
pub use set::{IndexSet, LongSet};
pub use state::State;
pub use table::Table;
