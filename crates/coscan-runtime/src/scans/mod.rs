//! Scans, from a request to batches.
//!
//! A query asks with a [`request`]. Core knows its needs as a `ScanSpec`; what is decoded of each chunk is in the
//! [parts](crate::chunks::parts). The state has it as a [`RunningScan`](crate::driver::RunningScan), the query as a
//! [`handle`], whose owner in public is a [`scan`]. Each partition has a [`worker`], which opens one chunk after the other,
//! and a [`stream`], which polls it. What others see of it while it runs is a
//! [report](crate::observe::scan_report).

pub(crate) mod handle;
pub(crate) mod request;
pub(crate) mod scan;
pub(crate) mod selection;
pub(crate) mod stream;
pub(crate) mod worker;
pub(crate) mod worker_stream;
