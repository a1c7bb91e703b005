//! Object stores, which provide the bytes of tables.
//!
//! Everything here is an [`object_store::ObjectStore`] or finds one, so plain DataFusion and coscan
//! read through the same stack. Wrappers compose, outermost first, for example
//! `MeteredStore` (`LimitedStore` (`DirectFileStore`)).
//!
//! | task | files |
//! |---|---|
//! | The store of a URL ([`Stores`]) | `registry`; `direct`, `direct_reads` and `direct_file` (local files; `local_device` and `mounts`: their devices; `device`), `web`, `bucket` (S3, Google, Azure) |
//! | Settings of the clouds ([`StoreOptions`]) | `cloud` (names of settings), `options`, `credential_errors` (hides their values) |
//! | Stores across the network ([`Timeouts`]) | `remote` (explains errors), `timeouts`, `circuit_breaker` (circuit breaker), `throttle` (stores that ask to slow down) |
//! | The files at a location ([`list_files`]) | `listing`, `location` (parses), `glob_match` |
//! | Slow devices and counts ([`LimitedStore`], [`MeteredStore`]) | `emulated_device`, `metered`, both through `delegate` |
//! | What other servers may read ([`Prefixes`]) | `prefixes` |
//! | Errors ([`StoreError`]) | `error`, `error_text` |
//!
//! [`DirectFileStore`], [`LimitedStore`] and [`MeteredStore`] serve `get_ranges` with the fewest *requests*: ranges with
//! small gaps share one ([`coalesce`]). A request is one contiguous range of one file.

mod bucket;
mod circuit_breaker;
mod cloud;
mod credential_errors;
mod delegate;
mod device;
mod direct;
mod direct_file;
mod direct_reads;
mod emulated_device;
mod error;
mod error_text;
mod glob_match;
mod jitter;
mod listing;
mod local_device;
mod location;
mod metered;
mod mounts;
mod options;
mod prefixes;
mod ranges;
mod registry;
mod remote;
mod throttle;
mod timeouts;
mod web;

pub use device::Device;
pub use direct::DirectFileStore;
pub use emulated_device::{LimitedStore, Limits};
pub use error::StoreError;
pub use error_text::error_text;
pub use jitter::Jitter;
pub use listing::{Listing, list_files};
pub use location::URL_LENGTH_MAX;
pub use metered::{MeteredStore, ReadCounts, ReadRecord, StoreMetrics};
pub use options::StoreOptions;
pub use prefixes::Prefixes;
pub use ranges::{COALESCE_GAP_BYTES, coalesce};
pub use registry::Stores;
pub(crate) use throttle::SLOW_DOWN;
pub use timeouts::Timeouts;
