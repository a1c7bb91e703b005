//! A chunk in the hands of a worker: its pages while it is opened, the parts of it that are read, and its columns,
//! decoded once for all scans where that pays.

pub(crate) mod batch;
pub(crate) mod columns;
pub(crate) mod decode_cache;
pub(crate) mod lease;
