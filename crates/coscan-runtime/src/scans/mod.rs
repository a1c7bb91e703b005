//! Scans, from a request to batches.
//!
//! A query makes a [`request`]. Its rows become whole chunks, parts of chunks, or pages only ([`selection`]). The reads
//! of each chunk are its [`parts`]. Core has the scan as a `ScanSpec`, the state as a
//! [`RunningScan`](crate::driver::RunningScan). Workers hold a [`handle`] to it, and so does the public [`scan`]. A
//! [`worker`] opens one chunk after the other, its [`worker_stream`] polls it, and the public [`stream`] gives the
//! batches of one table. Others see a [report](crate::observe::scan_report) while it runs.

pub(crate) mod handle;
pub(crate) mod parts;
pub(crate) mod request;
pub(crate) mod scan;
pub(crate) mod selection;
pub(crate) mod stream;
pub(crate) mod worker;
pub(crate) mod worker_stream;
