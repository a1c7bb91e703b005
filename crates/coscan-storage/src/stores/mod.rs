//! Object stores: where the bytes of tables come from.
//!
//! Everything here is an [`object_store::ObjectStore`] or finds one, so plain DataFusion and coscan
//! read through the same stack. Wrappers compose, outermost first, for example
//! `MeteredStore` (`LimitedStore` (`DirectFileStore`)).
//!
//! In call order:
//!
//! - [`Stores`] finds the store of a URL, with [`StoreOptions`] and [`Timeouts`] if wanted;
//! - [`list_files`] finds the files that a location names;
//! - [`DirectFileStore`] reads local files past the operating system's cache;
//! - [`LimitedStore`] reproduces a slow disk or a distant object store;
//! - [`MeteredStore`] counts requests and bytes;
//! - [`FaultyStore`] fails, stalls and truncates reads, for tests.
//!
//! Every store here serves `get_ranges` as the fewest *requests*: ranges with a small gap between
//! them become one ([`COALESCE_GAP_BYTES`]). A request is one contiguous range of one file.

mod bucket;
mod cloud;
mod credentials;
mod delegate;
mod direct;
mod direct_file;
mod error;
mod error_text;
mod faulty;
mod glob_match;
mod limited;
mod listing;
mod location;
mod metered;
mod options;
mod ranges;
mod registry;
mod remote;
mod silence;
mod timeouts;
mod web;

pub use direct::DirectFileStore;
pub use error::StoreError;
pub use error_text::error_text;
pub use faulty::{FaultCounts, Faults, FaultyStore};
pub use limited::{LimitedStore, Limits};
pub use listing::{Listing, list_files};
pub use metered::{MeteredStore, ReadCounts, ReadRecord, StoreMetrics};
pub use options::StoreOptions;
pub use ranges::{COALESCE_GAP_BYTES, coalesce};
pub use registry::Stores;
pub use timeouts::Timeouts;
